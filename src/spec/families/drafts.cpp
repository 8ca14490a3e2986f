// Drafts for speculative decoding: small decoders that read hidden states of a target model.
// EAGLE-3 and P-EAGLE guess tokens one after another (arXiv 2503.01840; sgl-project/SpecForge,
// modeling/draft/llama3_eagle.py, peagle.py); DFlash and its descendants guess blocks (arXiv
// 2602.06036; z-lab/dflash, model.py; SpecForge, dflash.py, domino.py, dspark.py).
#include "drafts.h"

#include <algorithm>

#include "../decoder.h"
#include "../towers/tower_weights.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kPlainClass = "LlamaForCausalLM";
constexpr std::string_view kParallelEagle = "PEagleDraftModel";
constexpr std::string_view kConvolvedFlash = "DFlash2DraftModel";
constexpr std::string_view kMarkovFlash = "DSparkDraftModel";
constexpr std::string_view kRecurrentFlash = "DominoDraftModel";
// Notes of an engine in models that are no drafts, where they change nothing.
constexpr std::string_view kEagleNotes = "eagle_config";
constexpr std::string_view kNotRun = "a draft reads hidden states of its target model";

void add_text(ModelSpec& spec, std::string path, std::vector<std::int64_t> shape, WeightRole role) {
  spec.counted_only.push_back(
      {std::move(path), std::move(shape), role, 1, ModelPart::text, CountedUse::part_not_run});
}

/// Hidden states of the target that EAGLE-3 reads side by side, one of each of its layers.
struct EagleStates {
  std::int64_t layers = 3;
  bool one_norm = false;  ///< over all of them, before their projection
};

/// The keys that a config has beside the sizes, or in an object of notes.
void read_eagle_keys(ConfigReader& keys, EagleStates& states) {
  const std::int64_t named = std::ssize(keys.counts("eagle_aux_hidden_state_layer_ids"));
  if (named > 0) states.layers = named;
  states.one_norm = keys.flag_or({"norm_before_fc"}, states.one_norm);
}

EagleStates read_eagle_states(ConfigReader& config) {
  EagleStates states;
  read_eagle_keys(config, states);
  auto eagle = config.object(kEagleNotes);
  if (!eagle) return states;
  read_eagle_keys(*eagle, states);
  eagle->ignore({"use_aux_hidden_state", "use_input_layernorm_in_first_layer", "use_last_layernorm",
                 "use_mtp_layernorm"});
  eagle->finish();
  return states;
}

/// The first layer's projections also read the embedding of the last token, beside the states.
void count_embedding_columns(const ConfigReader& config, ModelSpec& spec) {
  const AttentionSpec& attention = spec.decoder->self_attention;
  const auto rows_of = [&](std::int64_t heads) {
    return product(config, "head_dim", heads, attention.head_dim);
  };
  const std::int64_t keys = rows_of(attention.num_key_value_heads);
  const auto columns = [&](const char* name, std::int64_t rows) {
    add_text(spec, std::string("first_layer.attention.") + name + ".embedding_columns",
             {rows, spec.hidden_size}, WeightRole::attention);
  };
  columns("query", rows_of(attention.num_attention_heads));
  columns("key", keys);
  columns("value", keys);
  add_text(spec, "first_layer.embedding_norm.weight", {spec.hidden_size}, WeightRole::norm);
}

/// The projection of the target's states, and a norm of each, if there are any.
void count_eagle_inputs(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = config.size_or({"target_hidden_size"}, spec.hidden_size);
  const EagleStates states = read_eagle_states(config);
  const std::int64_t all = product(config, "target_hidden_size", states.layers, width);
  TowerWeights inputs(spec, ModelPart::projector);
  inputs.linear_if(false, "states", all, spec.hidden_size, WeightRole::projector);
  if (states.one_norm) inputs.norm(NormKind::rms_norm, "all_states_norm", all);
  if (config.flag_or({"fc_norm"}, false)) {
    inputs.norm(NormKind::rms_norm, "states_norm", width, states.layers);
  }
  if (spec.architecture == kParallelEagle) {
    inputs.add("masked_states", {1, 1, all}, WeightRole::projector);
  }
}

void read_eagle_layers(ConfigReader& layers, ModelSpec& spec, DecoderDefaults defaults) {
  defaults.bias = BiasRule::none;
  read_decoder(layers, spec, defaults);
  layers.expect_flag("attention_bias", false);
  layers.expect_flag("mlp_bias", false);
  const bool windowed = layers.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(layers, 0);
  if (windowed) spec.decoder->self_attention.window = window;
  layers.ignore({"max_window_layers", "layer_types", "decoder_sparse_step", "qkv_bias"});
}

enum class EagleLayers { llama, qwen3 };

/// Layers of Llama or of Qwen3, whose config speculators nests (eagle3/model_definitions.py).
void read_nested_eagle_layers(ConfigReader& layers, ModelSpec& spec) {
  const EagleLayers kind = layers.choice_or<EagleLayers>(
      {"model_type"}, {{"llama", EagleLayers::llama}, {"qwen3", EagleLayers::qwen3}},
      EagleLayers::llama);
  DecoderDefaults defaults;
  if (kind == EagleLayers::qwen3) defaults.head_dim = 128;
  read_eagle_layers(layers, spec, defaults);
  StackSpec& stack = *spec.decoder;
  if (kind == EagleLayers::qwen3) {
    stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  }
  layers.ignore({"architectures"});
  layers.finish();
}

void read_eagle(ConfigReader& config, ModelSpec& spec) {
  if (auto layers = config.object("transformer_layer_config")) {
    config.ignore_keys_of(*layers);
    read_nested_eagle_layers(*layers, spec);
  } else {
    read_eagle_layers(config, spec, {});
  }
  const std::int64_t words = spec.embedding.vocab_size;
  spec.embedding.input = InputKind::hidden_states;
  spec.embedding.vocab_size = config.size_or({"draft_vocab_size"}, words);
  spec.counted_only.push_back({"embeddings.word_embeddings.weight",
                               {words, spec.hidden_size},
                               WeightRole::embedding,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
  count_eagle_inputs(config, spec);
  count_embedding_columns(config, spec);
  spec.not_run = kNotRun;
  spec.assumptions.emplace_back(
      "a draft: an engine shares the embedding with its target, which counts here, too");
  spec.assumptions.emplace_back(
      "the projection of its target's states, and the columns of its first layer that read the "
      "embedding, count as parameters, without FLOPs");
  // How a draft was trained, which changes neither weights nor operators.
  config.ignore({"target_model_type", "norm_output", "norm_before_residual", "embed_requires_grad",
                 "speculators_config", "speculators_model_type", "speculators_version"});
}

HeadSpec eagle_head(ConfigReader&) {
  LanguageModelHeadSpec head;
  head.float32_logits = true;
  return language_model_head(head);
}

/// Two convolutions beside each part of a layer, and a choice of tokens by pairs (DFlash 2).
void count_convolutions(ConfigReader& config, ConfigReader& flash, ModelSpec& spec) {
  const std::int64_t kernel = flash.size({"conv_kernel_size"});
  const std::int64_t group = flash.size({"conv_group_size"});
  const std::int64_t rank = flash.size({"selector_rank"});
  const std::int64_t width = spec.hidden_size;
  if (width % group != 0) {
    config.fail("hidden_size", "is no multiple of conv_group_size", "use groups of equal size");
  }
  const std::int64_t layers = spec.decoder->num_layers;
  TowerWeights added(spec, ModelPart::text);
  for (const char* const place : {"attention_convolution", "mlp_convolution"}) {
    const std::string path = std::string("layers.") + place;
    added.add(path + ".kernel", {2, kernel, width}, WeightRole::attention, layers);
    added.linear_if(false, path + ".projection", width,
                    product(config, "conv_kernel_size", 2 * kernel, width / group),
                    WeightRole::attention, layers);
  }
  const std::int64_t words = spec.embedding.vocab_size;
  added.add("selector.predecessors.weight", {words, rank}, WeightRole::embedding);
  added.add("selector.successors.weight", {words, rank}, WeightRole::embedding);
  added.linear_if(false, "selector.states", width, rank, WeightRole::head);
}

enum class MarkovHead { vanilla, gated, recurrent };

/// A bias of the logits by the token before, of low rank, and the chance of acceptance (DSpark).
void count_markov_head(ConfigReader& config, ConfigReader& flash, ModelSpec& spec) {
  const std::int64_t rank = flash.count_or({"markov_rank"}, 0);
  const MarkovHead kind = flash.choice_or<MarkovHead>({"markov_head_type"},
                                                      {{"vanilla", MarkovHead::vanilla},
                                                       {"gated", MarkovHead::gated},
                                                       {"rnn", MarkovHead::recurrent}},
                                                      MarkovHead::vanilla);
  const std::int64_t width = spec.hidden_size;
  const std::int64_t words = spec.embedding.vocab_size;
  TowerWeights added(spec, ModelPart::text);
  if (rank > 0) {
    added.add("markov_head.tokens.weight", {words, rank}, WeightRole::embedding);
    added.linear_if(false, "markov_head.logits", rank, words, WeightRole::head);
    if (kind == MarkovHead::gated) {
      added.linear("markov_head.gate", width + rank, rank, WeightRole::head);
    }
    if (kind == MarkovHead::recurrent) {
      const std::int64_t read = config.sum("hidden_size", width, 2 * rank);
      added.linear("markov_head.cell", read, 3 * rank, WeightRole::head);
    }
  }
  const double weight = flash.number_or({"confidence_head_alpha"}, 0);
  const bool with_markov = flash.flag_or({"confidence_head_with_markov"}, false);
  if (!flash.flag_or({"enable_confidence_head"}, weight > 0)) return;
  added.linear("confidence_head", with_markov ? width + rank : width, 1, WeightRole::head);
}

/// A GRU over the tokens of a block, which corrects the logits (Domino).
void count_recurrent_head(ConfigReader& config, ConfigReader& flash, ModelSpec& spec) {
  constexpr std::int64_t kGates = 3;
  const std::int64_t inner = flash.size({"emb_dim"});
  const std::int64_t state = flash.size({"gru_hidden_dim"});
  const std::int64_t gates = product(config, "gru_hidden_dim", kGates, state);
  TowerWeights added(spec, ModelPart::text);
  added.linear_if(false, "gru.input", spec.hidden_size, gates, WeightRole::head);
  added.linear_if(false, "gru.state", state, gates, WeightRole::head);
  added.linear_if(false, "correction.down", spec.hidden_size + state, inner, WeightRole::head);
  added.linear_if(false, "correction.logits", inner, spec.embedding.vocab_size, WeightRole::head);
  config.ignore({"emb_dim", "gru_hidden_dim"});
}

void count_flash_head(ConfigReader& config, ConfigReader& flash, ModelSpec& spec) {
  if (spec.architecture == kConvolvedFlash) count_convolutions(config, flash, spec);
  if (spec.architecture == kMarkovFlash) count_markov_head(config, flash, spec);
  if (spec.architecture == kRecurrentFlash) count_recurrent_head(config, flash, spec);
}

/// As many of the target's layers as `target_layer_ids` names, else as the draft has.
std::int64_t read_target_layers(ConfigReader& config, ConfigReader& flash, const ModelSpec& spec) {
  std::int64_t named = std::ssize(flash.counts("target_layer_ids"));
  if (named == 0) named = std::ssize(config.counts("target_layer_ids"));
  return named == 0 ? spec.decoder->num_layers : named;
}

/// The tokens of a block see each other, unless the config says that the draft is causal; in layers
/// with a window, no token sees a later one (vllm-project/vllm, models/qwen3_dflash.py).
void read_block_mask(ConfigReader& config, ConfigReader& flash, StackSpec& stack) {
  const bool stated = flash.flag_or({"causal"}, false);
  stack.self_attention.causal = true;  // but for the block
  for (LayerVariant& variant : stack.variants) variant.self_attention.causal = true;
  if (config.flag_or({"is_causal"}, stated)) return;
  const auto open = [](AttentionSpec& attention) {
    if (attention.window.kind == WindowKind::none) attention.lookahead = Lookahead::prompt;
  };
  open(stack.self_attention);
  for (LayerVariant& variant : stack.variants) open(variant.self_attention);
}

/// Keys and values of heads of their own, or shared by groups of queries.
void expect_usual_heads(ConfigReader& flash) {
  const bool own = flash.is_text("attention_mode", "mha");
  flash.expect_text("attention_mode", own ? "mha" : "gqa");
}

/// DFlash: Qwen3's layers, whose queries are those of a block of masked tokens and whose keys are
/// also those of the target's states. It has neither embedding nor head: they are the target's.
void read_flash(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.head_dim = 128;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.query_key_norm = QueryKeyNormSpec{spec.decoder->norm};
  read_qwen_windows(config, *spec.decoder);
  spec.embedding.input = InputKind::hidden_states;
  ConfigReader flash = config.object_or_empty("dflash_config");
  read_block_mask(config, flash, *spec.decoder);
  expect_usual_heads(flash);
  const std::int64_t layers = read_target_layers(config, flash, spec);
  TowerWeights states(spec, ModelPart::projector);
  states.linear_if(false, "states", product(config, "hidden_size", layers, spec.hidden_size),
                   spec.hidden_size, WeightRole::projector);
  states.norm(NormKind::rms_norm, "states_norm", spec.hidden_size);
  count_flash_head(config, flash, spec);
  flash.ignore({"mask_token_id", "block_size", "projector_type", "shift_label",
                "pure_draft_prefix_len", "selector_top_k", "output_multiplier",
                "final_logit_softcapping", "input_embedding_scale", "target_layer_ids"});
  flash.finish();
  spec.not_run = kNotRun;
  spec.assumptions.emplace_back(
      "a prefill is one block of a draft: the projection of its target's states, and their keys "
      "and "
      "values, have no FLOPs here");
  config.ignore({"block_size", "num_target_layers", "mask_token_id"});
}

}  // namespace

const Family* find_draft(std::string_view architecture) {
  if (architecture == kPlainClass) return nullptr;
  const auto is_it = [&](const ModelClass& known) { return known.name == architecture; };
  for (const std::string_view type : {"eagle3", "dflash"}) {
    const Family* const family = find_family(type);
    if (std::ranges::any_of(family->classes.list, is_it)) return family;
  }
  return nullptr;
}

const Family* find_draft(const ConfigReader& config, std::string_view architecture) {
  // The first published files of EAGLE-3 name Llama's class.
  const bool plain = architecture == kPlainClass && config.has("draft_vocab_size");
  return plain ? find_family("eagle3") : find_draft(architecture);
}

std::vector<Family> drafts_families() {
  constexpr std::string_view kOwnFiles =
      "the first layer's projections are stored beside those of the embedding";
  return {{.model_types = {"eagle3"},
           .classes = {{{"LlamaForCausalLMEagle3", eagle_head},
                        {"Eagle3LlamaForCausalLM", eagle_head},
                        {"Eagle3Speculator", eagle_head},
                        {"Eagle3DraftModel", eagle_head},
                        {std::string(kParallelEagle), eagle_head},
                        {std::string(kPlainClass), eagle_head}}},
           .reader = read_eagle,
           .names = None(kOwnFiles),
           .gguf = None("not supported yet")},
          {.model_types = {"dflash"},
           .classes = {{{"DFlashDraftModel", no_head},
                        {std::string(kConvolvedFlash), no_head},
                        {std::string(kMarkovFlash), no_head},
                        {std::string(kRecurrentFlash), no_head}}},
           .reader = read_flash,
           .names = None("drafts have no stored names yet"),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
