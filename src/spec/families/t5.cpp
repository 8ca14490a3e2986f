// T5: encoder-decoder with RMSNorm before each part, relative position biases, no attention scale
// (arXiv 1910.10683); v1.1 has a gated FFN and an untied head (arXiv 2002.05202). mT5 is v1.1 for
// many languages (arXiv 2010.11934); UMT5 has its own biases in every layer (arXiv 2304.09151).
// LongT5's encoder attends locally (arXiv 2112.07916, section 3.1.1), or to transient global tokens
// as well (section 3.1.2). Switch Transformers have experts in some layers (arXiv 2101.03961).
#include <fmt/format.h>

#include "../common_keys.h"
#include "../family.h"
#include "../sparse_stacks.h"

namespace headroom::detail {
namespace {

struct FeedForwardKind {
  FfnKind kind;
  ActivationKind activation;
};

/// Defaults of a class.
struct T5Defaults {
  FeedForwardKind feed_forward;
  bool tied;
  bool scales = true;  ///< the input of a tied head
};

constexpr T5Defaults kT5Defaults{{FfnKind::plain, ActivationKind::relu}, true};
constexpr T5Defaults kMt5Defaults{{FfnKind::gated, ActivationKind::gelu_new}, false, false};
constexpr T5Defaults kUmt5Defaults{{FfnKind::gated, ActivationKind::gelu_new}, false};

FeedForwardKind read_feed_forward(ConfigReader& config, const T5Defaults& defaults) {
  // Hugging Face reads "gated-gelu" as the written-out tanh approximation (gelu_new).
  FeedForwardKind result =
      config.choice_or<FeedForwardKind>({"feed_forward_proj"},
                                        {{"relu", {FfnKind::plain, ActivationKind::relu}},
                                         {"gelu", {FfnKind::plain, ActivationKind::gelu}},
                                         {"gelu_new", {FfnKind::plain, ActivationKind::gelu_new}},
                                         {"gated-relu", {FfnKind::gated, ActivationKind::relu}},
                                         {"gated-gelu", {FfnKind::gated, ActivationKind::gelu_new}},
                                         {"gated-silu", {FfnKind::gated, ActivationKind::silu}}},
                                        defaults.feed_forward);
  // Attributes that feed_forward_proj sets, unless the file states them.
  result.activation = read_activation(config, {"dense_act_fn"}, result.activation);
  const bool gated = config.flag_or({"is_gated_act"}, result.kind == FfnKind::gated);
  result.kind = gated ? FfnKind::gated : FfnKind::plain;
  return result;
}

/// T5 v1.0 ties its head and scales the head's input. Configs saved by transformers 5 set
/// tie_word_embeddings for both versions and store the difference in scale_decoder_outputs. All
/// classes tie by default: a config without sizes has their defaults, while published files with a
/// head of their own may leave the key out.
bool read_tied(ConfigReader& config, const T5Defaults& defaults) {
  const bool is_default = !config.has("d_model") && !config.has("hidden_size");
  const bool tied = config.flag_or({"tie_word_embeddings"}, defaults.tied || is_default);
  return config.flag_or({"scale_decoder_outputs"}, tied);
}

ClassifierSpec token_classifier(ConfigReader& config) {
  ClassifierSpec classifier;
  classifier.input = ClassifierInput::every_token;
  classifier.dropout = config.probability_or({"classifier_dropout"}, 0);
  return classifier;
}

/// Classifies the decoder's end-of-sequence token.
HeadSpec sequence_head(ConfigReader& config) {
  ClassifierSpec classifier = token_classifier(config);
  classifier.input = ClassifierInput::end_token;
  classifier.token_id = read_token_id(config, "eos_token_id");
  classifier.dense = ActivationKind::tanh;
  classifier.dense_dropout = classifier.dropout;
  return classifier_head(classifier);
}

ModelClasses t5_classes(const std::string& prefix, const T5Defaults& defaults) {
  const HeadReader language_model = [defaults](ConfigReader& config) {
    const bool tied = read_tied(config, defaults);
    LanguageModelHeadSpec head;
    head.weight = tied ? WeightSharing::shared : WeightSharing::separate;
    head.shared_if_absent = true;
    head.scale_by_inverse_sqrt_hidden = tied && defaults.scales;
    return language_model_head(head);
  };
  const HeadReader tokens = [](ConfigReader& config) {
    return classifier_head(token_classifier(config));
  };
  return ModelClasses{{{prefix + "ForConditionalGeneration", language_model},
                       {prefix + "WithLMHeadModel", language_model},
                       {prefix + "Model", no_head},
                       {prefix + "EncoderModel", no_head},
                       {prefix + "ForSequenceClassification", sequence_head},
                       {prefix + "ForTokenClassification", tokens},
                       {prefix + "ForQuestionAnswering", answer_span_head}}};
}

StackSpec read_stack(ConfigReader& config, std::int64_t num_layers, const T5Defaults& defaults) {
  StackSpec stack;
  stack.num_layers = num_layers;
  AttentionSpec& attention = stack.self_attention;
  attention.num_attention_heads = config.size({"num_heads", "num_attention_heads"});
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = config.size({"d_kv"});
  attention.value_head_dim = attention.head_dim;
  attention.scale = AttentionScale::none;
  attention.softmax = SoftmaxPrecision::float32;
  const FeedForwardKind feed_forward = read_feed_forward(config, defaults);
  stack.ffn = {feed_forward.kind, config.size({"d_ff"}), feed_forward.activation, false};
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::rms_norm, false, config.number_or({"layer_norm_epsilon"}, 1e-6)};
  stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"dropout_rate"}, 0.1);
  stack.dropout = {dropout, dropout, dropout, dropout, dropout, dropout};
  return stack;
}

void read_t5_like(ConfigReader& config, ModelSpec& spec, const T5Defaults& defaults) {
  const bool encoder_only = spec.architecture.ends_with("EncoderModel") ||
                            spec.architecture.ends_with("ForTokenClassification");

  // `scalable_attention` is a note of UMT5's authors.
  config.ignore({"n_positions", "is_encoder_decoder", "classifier_dropout", "scalable_attention"});
  spec.kind = encoder_only ? ModelKind::encoder : ModelKind::encoder_decoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::relative_bias;
  spec.position.num_buckets = config.size_or({"relative_attention_num_buckets"}, 32);
  spec.position.max_distance = config.size_or({"relative_attention_max_distance"}, 128);
  // A class builds its own layers whatever model_type says.
  if (spec.architecture.starts_with("UMT5")) {
    spec.position.bias_sharing = RelativeBiasSharing::layer;
  }

  const std::int64_t num_layers = config.layers({"num_layers", "num_hidden_layers"});
  const std::int64_t num_decoder_layers = config.layers_or({"num_decoder_layers"}, num_layers);
  spec.encoder = read_stack(config, num_layers, defaults);
  if (encoder_only) return;
  const std::optional<std::int64_t> start = read_token_id(config, "decoder_start_token_id");
  if (spec.head.classifier) spec.decoder_start_id = start;
  spec.decoder = read_stack(config, num_decoder_layers, defaults);
  spec.decoder->cross_attention = spec.decoder->self_attention;
  spec.decoder->self_attention.causal = true;
}

void read_t5(ConfigReader& config, ModelSpec& spec) { read_t5_like(config, spec, kT5Defaults); }

void read_mt5(ConfigReader& config, ModelSpec& spec) { read_t5_like(config, spec, kMt5Defaults); }

/// Attention that only LongT5's encoder has.
enum class EncoderAttention { local, transient_global };

/// Local attention: tokens see those at most `local_radius` away, in blocks of one more. Transient
/// global attention: they also see a token for each block of `global_block_size`.
void read_longt5(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kRadius = 127;
  constexpr std::int64_t kGlobalBlock = 16;
  read_t5_like(config, spec, kT5Defaults);
  const auto kind =
      config.choice_or<EncoderAttention>({"encoder_attention_type"},
                                         {{"local", EncoderAttention::local},
                                          {"transient-global", EncoderAttention::transient_global}},
                                         EncoderAttention::local);
  AttentionSpec& attention = spec.encoder->self_attention;
  const std::int64_t global_block = config.size_or({"global_block_size"}, kGlobalBlock);
  if (kind == EncoderAttention::transient_global) attention.global_block_size = global_block;
  const std::int64_t radius = config.size_or({"local_radius"}, kRadius);
  attention.window = {WindowKind::centred, radius};
  attention.block_size = radius + 1;
}

/// The layers with experts: with a step of 1 all, else those whose number modulo the step is 1. A
/// config without steps has the numbers of such layers. Source: SwitchTransformersConfig and
/// SwitchTransformersStack, transformers, models/switch_transformers.
std::vector<bool> read_switch_layers(ConfigReader& config, std::string_view step_key,
                                     std::string_view count_key, std::int64_t num_layers) {
  constexpr std::int64_t kDefault = 3;
  const std::int64_t count = config.count_or({count_key}, kDefault);
  const std::int64_t step =
      config.count_or({step_key}, count > 0 ? num_layers / count : num_layers);
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    sparse.push_back(step == 1 || (step > 1 && layer % step == 1));
  }
  return sparse;
}

/// Switch Transformers: T5 whose experts are chosen one a token, and weighted by its probability.
void read_switch_transformers(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kExperts = 8;
  constexpr std::int64_t kCapacity = 64;
  read_t5_like(config, spec, kT5Defaults);
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class({"num_experts"}, kExperts);
  experts.num_experts_per_tok = 1;
  experts.router_bias = config.flag_or({"router_bias"}, false);
  // The class has plain networks only, whatever feed_forward_proj says.
  const ActivationKind activation = read_activation(config, {"dense_act_fn"}, ActivationKind::relu);
  for (auto* const stack : {&spec.encoder, &spec.decoder}) {
    if (!*stack) continue;
    (*stack)->ffn.kind = FfnKind::plain;
    (*stack)->ffn.activation = activation;
  }
  set_sparse_layers(*spec.encoder,
                    read_switch_layers(config, "encoder_sparse_step", "num_sparse_encoder_layers",
                                       spec.encoder->num_layers),
                    experts);
  if (spec.decoder) {
    set_sparse_layers(*spec.decoder,
                      read_switch_layers(config, "decoder_sparse_step", "num_sparse_decoder_layers",
                                         spec.decoder->num_layers),
                      experts);
  }
  require_experts_in_both(config, spec, "decoder_sparse_step");
  spec.assumptions.push_back(
      fmt::format("experts take all of their tokens; the class drops those of a sequence that are "
                  "more than {} for one expert",
                  config.size_or({"expert_capacity"}, kCapacity)));
  config.ignore({"decoder_sparse_step", "num_sparse_decoder_layers", "router_jitter_noise",
                 "router_dtype", "router_type", "router_ignore_padding_tokens",
                 "router_z_loss_coef", "router_aux_loss_coef", "output_router_logits",
                 "add_router_probs"});
}

constexpr NameRule kSwitch[] = {
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.mlp.wi.%"},
    {"encoder.layers.mlp.down.%", "encoder.block.{}.layer.1.mlp.wo.%"},
    {"encoder.layers.mlp.router.%", "encoder.block.{}.layer.1.mlp.router.classifier.%"},
    {"encoder.layers.mlp.experts.up.%", "encoder.block.{}.layer.1.mlp.experts.expert_{e}.wi.%"},
    {"encoder.layers.mlp.experts.down.%", "encoder.block.{}.layer.1.mlp.experts.expert_{e}.wo.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.mlp.wi.%"},
    {"decoder.layers.mlp.down.%", "decoder.block.{}.layer.2.mlp.wo.%"},
    {"decoder.layers.mlp.router.%", "decoder.block.{}.layer.2.mlp.router.classifier.%"},
    {"decoder.layers.mlp.experts.up.%", "decoder.block.{}.layer.2.mlp.experts.expert_{e}.wi.%"},
    {"decoder.layers.mlp.experts.down.%", "decoder.block.{}.layer.2.mlp.experts.expert_{e}.wo.%"},
};

constexpr NameRule kLongT5[] = {
    {"encoder.relative_attention_bias.%",
     "encoder.block.0.layer.0.LocalSelfAttention.relative_attention_bias.%"},
    {"encoder.layers.attention.query.%", "encoder.block.{}.layer.0.LocalSelfAttention.q.%"},
    {"encoder.layers.attention.key.%", "encoder.block.{}.layer.0.LocalSelfAttention.k.%"},
    {"encoder.layers.attention.value.%", "encoder.block.{}.layer.0.LocalSelfAttention.v.%"},
    {"encoder.layers.attention.output.%", "encoder.block.{}.layer.0.LocalSelfAttention.o.%"},
    {"encoder.relative_attention_bias.%",
     "encoder.block.0.layer.0.TransientGlobalSelfAttention.relative_attention_bias.%"},
    {"encoder.global_relative_attention_bias.%",
     "encoder.block.0.layer.0.TransientGlobalSelfAttention.global_relative_attention_bias.%"},
    {"encoder.layers.global_input_norm.%",
     "encoder.block.{}.layer.0.TransientGlobalSelfAttention.global_input_layer_norm.%"},
    {"encoder.layers.attention.query.%",
     "encoder.block.{}.layer.0.TransientGlobalSelfAttention.q.%"},
    {"encoder.layers.attention.key.%", "encoder.block.{}.layer.0.TransientGlobalSelfAttention.k.%"},
    {"encoder.layers.attention.value.%",
     "encoder.block.{}.layer.0.TransientGlobalSelfAttention.v.%"},
    {"encoder.layers.attention.output.%",
     "encoder.block.{}.layer.0.TransientGlobalSelfAttention.o.%"},
};

constexpr NameRule kUmt5[] = {
    {"encoder.layers.relative_attention_bias.%",
     "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.%"},
    {"decoder.layers.relative_attention_bias.%",
     "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias.%"},
};

constexpr NameRule kT5Classifiers[] = {
    {"head.classifier.dense.%", "classification_head.dense.%"},
    {"head.classifier.%", "classification_head.out_proj.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

constexpr NameRule kT5Gated[] = {
    {"encoder.layers.mlp.gate.%", "encoder.block.{}.layer.1.DenseReluDense.wi_0.%"},
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi_1.%"},
    {"decoder.layers.mlp.gate.%", "decoder.block.{}.layer.2.DenseReluDense.wi_0.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi_1.%"},
};

constexpr NameRule kT5Plain[] = {
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi.%"},
};

constexpr NameRule kT5[] = {
    {"encoder.embeddings.word_embeddings.%", "shared.%"},
    {"embeddings.word_embeddings.%", "shared.%"},
    {"encoder.relative_attention_bias.%",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.%"},
    {"encoder.layers.attention_norm.%", "encoder.block.{}.layer.0.layer_norm.%"},
    {"encoder.layers.attention.query.%", "encoder.block.{}.layer.0.SelfAttention.q.%"},
    {"encoder.layers.attention.key.%", "encoder.block.{}.layer.0.SelfAttention.k.%"},
    {"encoder.layers.attention.value.%", "encoder.block.{}.layer.0.SelfAttention.v.%"},
    {"encoder.layers.attention.output.%", "encoder.block.{}.layer.0.SelfAttention.o.%"},
    {"encoder.layers.mlp_norm.%", "encoder.block.{}.layer.1.layer_norm.%"},
    {"encoder.layers.mlp.down.%", "encoder.block.{}.layer.1.DenseReluDense.wo.%"},
    {"encoder.final_norm.%", "encoder.final_layer_norm.%"},
    {"decoder.relative_attention_bias.%",
     "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.%"},
    {"decoder.layers.attention_norm.%", "decoder.block.{}.layer.0.layer_norm.%"},
    {"decoder.layers.attention.query.%", "decoder.block.{}.layer.0.SelfAttention.q.%"},
    {"decoder.layers.attention.key.%", "decoder.block.{}.layer.0.SelfAttention.k.%"},
    {"decoder.layers.attention.value.%", "decoder.block.{}.layer.0.SelfAttention.v.%"},
    {"decoder.layers.attention.output.%", "decoder.block.{}.layer.0.SelfAttention.o.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.block.{}.layer.1.layer_norm.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.block.{}.layer.1.EncDecAttention.q.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.block.{}.layer.1.EncDecAttention.k.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.block.{}.layer.1.EncDecAttention.v.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.block.{}.layer.1.EncDecAttention.o.%"},
    {"decoder.layers.mlp_norm.%", "decoder.block.{}.layer.2.layer_norm.%"},
    {"decoder.layers.mlp.down.%", "decoder.block.{}.layer.2.DenseReluDense.wo.%"},
    {"decoder.final_norm.%", "decoder.final_layer_norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

constexpr GgufKey kT5Keys[] = {
    {"embedding_length", "d_model"},
    {"block_count", "num_layers"},
    {"decoder_block_count", "num_decoder_layers"},
    {"feed_forward_length", "d_ff"},
    {"attention.head_count", "num_heads"},
    {"attention.key_length", "d_kv"},
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {"attention.relative_buckets_count", "relative_attention_num_buckets"},
};

void finish_t5(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const bool gated = metadata.has_tensor("enc.blk.0.ffn_gate.weight");
  config.set_text("feed_forward_proj", gated ? "gated-gelu" : "relu");
}

NameTable t5_names() {
  return {
      {kSwitch, kLongT5, kUmt5, kT5Gated, kT5Plain, kT5, kT5Classifiers},
      {"transformer."},
      {{"embed_tokens.weight", ExtraKind::tied_copy}, {"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace

std::vector<Family> t5_families() {
  return {
      {.model_types = {"t5"},
       .classes = either_of(t5_classes("T5", kT5Defaults), t5_classes("UMT5", kT5Defaults)),
       .reader = read_t5,
       .names = t5_names(),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "t5", .common = kT5Keys, .head_dim = GgufHeadDim::never, .finish = finish_t5},
            {.name = "t5encoder",
             .common = kT5Keys,
             .constants = {{"architectures", R"(["T5EncoderModel"])"}},
             .head_dim = GgufHeadDim::never,
             .finish = finish_t5}})},
      {.model_types = {"mt5"},
       .classes = either_of(t5_classes("MT5", kMt5Defaults), t5_classes("UMT5", kUmt5Defaults)),
       .reader = read_mt5,
       .names = t5_names(),
       .gguf = None("llama.cpp stores it under the name of T5")},
      {.model_types = {"longt5"},
       .classes = t5_classes("LongT5", kT5Defaults),
       .reader = read_longt5,
       .names = t5_names(),
       .gguf = None("llama.cpp does not support this architecture")},
      {.model_types = {"switch_transformers"},
       .classes = t5_classes("SwitchTransformers", kT5Defaults),
       .reader = read_switch_transformers,
       .names = t5_names(),
       .gguf = None("llama.cpp does not support this architecture")},
      {.model_types = {"umt5"},
       .classes = t5_classes("UMT5", kUmt5Defaults),
       .reader = read_mt5,
       .names = t5_names(),
       .gguf = None("llama.cpp stores it under the name of T5")}};
}

}  // namespace headroom::detail
