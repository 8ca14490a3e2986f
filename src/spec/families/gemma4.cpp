// Gemma 3n and Gemma 4: per-layer embeddings, layers that share K and V with an earlier one, larger
// heads in full layers, experts beside the dense network (Google, model cards of gemma-3n-E4B and
// gemma-4-26B-A4B; transformers, models/gemma3n and models/gemma4).
#include <algorithm>
#include <cmath>

#include "../decoder.h"
#include "../family.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

DecoderDefaults gemma4_defaults() {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 131072;
  defaults.head_dim = 256;
  defaults.activation = ActivationKind::gelu_tanh;
  defaults.rope.by_layer_type = true;
  return defaults;
}

/// Choices of both: norms on both sides, a norm of each head of Q, K and V, scores without a scale.
void read_base(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults) {
  read_decoder(config, spec, defaults);
  spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::sandwich;
  AttentionSpec& attention = stack.self_attention;
  attention.scale = AttentionScale::none;
  attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  attention.value_norm = stack.norm;
  attention.value_norm->weight = NormWeight::none;
}

void read_soft_cap(ConfigReader& config, ModelSpec& spec, double when_absent) {
  const double cap = config.number_or({"final_logit_softcapping"}, when_absent);
  if (spec.head.language_model) spec.head.language_model->soft_cap = cap;
}

void read_per_layer_inputs(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = config.count_or({"hidden_size_per_layer_input"}, 256);
  const std::int64_t rows = config.size_or({"vocab_size_per_layer_input"}, 262144);
  if (width > 0) spec.embedding.per_layer = PerLayerInputSpec{rows, width};
}

/// Marks layers before the last `num_kv_shared_layers`.
std::vector<bool> read_own_key_values(ConfigReader& config, std::int64_t num_layers,
                                      std::int64_t when_absent) {
  const std::int64_t shared = config.count_or({"num_kv_shared_layers"}, when_absent);
  if (shared >= num_layers) {
    config.fail("num_kv_shared_layers", "leaves no layer with keys of its own",
                "write a number below num_hidden_layers");
  }
  std::vector<bool> own;
  for (std::int64_t layer = 0; layer < num_layers; ++layer)
    own.push_back(layer < num_layers - shared);
  return own;
}

/// Heads of the full layers: per_layer_config, one object per layer (transformers 5.16), or the
/// global_ keys of the published files.
void read_full_heads(ConfigReader& config, AttentionSpec& full) {
  auto by_layer = config.object("per_layer_config");
  std::int64_t head_dim = config.size_or({"global_head_dim"}, 512);
  std::int64_t kv_heads = full.num_key_value_heads;
  const auto global = config.optional_size({"num_global_key_value_heads"});
  if (global && full.value_is_key) kv_heads = *global;
  if (by_layer) {
    for (const std::string& layer : by_layer->keys()) {
      auto own = by_layer->object(layer);
      head_dim = own->size_or({"head_dim"}, head_dim);
      kv_heads = own->size_or({"num_key_value_heads"}, kv_heads);
      own->finish();
    }
  }
  full.head_dim = full.value_head_dim = head_dim;
  full.num_key_value_heads = kv_heads;
}

/// RoPE of both kinds of layers. Full layers rotate a quarter of their pairs by default.
void read_ropes(ConfigReader& config, ModelSpec& spec, AttentionSpec& full) {
  RopeSpec& local = spec.position.rope;
  local = read_rope_of(config, "sliding_attention", spec.position,
                       spec.decoder->self_attention.head_dim, local);
  RopeSpec by_default;
  by_default.theta = 1e6;
  by_default.rotated_pairs = full.head_dim / 8;
  full.rope = read_rope_of(config, "full_attention", spec.position, full.head_dim, by_default);
}

void read_gemma4_experts(ConfigReader& config, StackSpec& stack) {
  const bool routed = config.flag_or({"enable_moe_block"}, false);
  if (!routed) {
    config.ignore({"num_experts", "top_k_experts", "moe_intermediate_size"});
    return;
  }
  ExpertsSpec experts;
  experts.num_experts = config.size({"num_experts"});
  experts.num_experts_per_tok = config.size({"top_k_experts"});
  experts.intermediate_size = config.size({"moe_intermediate_size"});
  experts.normalise = true;
  experts.beside_dense = true;
  stack.ffn.experts = experts;
}

void read_gemma4_text(ConfigReader& config, ModelSpec& spec) {
  read_base(config, spec, gemma4_defaults());
  read_soft_cap(config, spec, 0);
  read_per_layer_inputs(config, spec);
  StackSpec& stack = *spec.decoder;
  read_gemma4_experts(config, stack);
  const auto rule = [](std::int64_t layer) { return (layer + 1) % 6 != 0; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  const WindowSpec window = read_window(config, 512);
  const bool value_is_key = config.flag_or({"attention_k_eq_v"}, false);
  stack.layer_scalar = true;
  AttentionSpec full = stack.self_attention;
  full.value_is_key = value_is_key;
  read_full_heads(config, full);
  read_ropes(config, spec, full);
  stack.self_attention.window = window;
  vary_layers(stack, windowed, [&](LayerVariant& variant) { variant.self_attention = full; });
  const std::vector<bool> own = read_own_key_values(config, stack.num_layers, 0);
  const bool wide = config.flag_or({"use_double_wide_mlp"}, false);
  vary_layers(stack, own, [&](LayerVariant& variant) {
    variant.self_attention.shares_key_values = true;
    if (wide) variant.ffn.intermediate_size *= 2;
  });
}

/// AltUp (arXiv 2301.13310) and Laurel (arXiv 2411.07501) of Gemma 3n.
void count_altup(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t inputs = config.size_or({"altup_num_inputs"}, 4);
  const std::int64_t rank = config.size_or({"laurel_rank"}, 64);
  const std::int64_t layers = spec.decoder->num_layers;
  const std::int64_t width = spec.hidden_size;
  config.ignore({"altup_active_idx", "altup_coef_clip", "altup_correct_scale",
                 "activation_sparsity_pattern"});
  const auto count = [&](const std::string& name, std::vector<std::int64_t> shape, WeightRole role,
                         std::int64_t repeat) {
    spec.counted_only.push_back(
        {"decoder.layers." + name, std::move(shape), role, repeat, ModelPart::text});
  };
  count("altup.correct_output_scale", {width}, WeightRole::norm, layers);
  count("altup.correction.weight", {inputs, inputs}, WeightRole::mlp, layers);
  count("altup.prediction.weight", {product(config, "altup_num_inputs", inputs, inputs), inputs},
        WeightRole::mlp, layers);
  count("altup.router.weight", {inputs, width}, WeightRole::mlp, layers);
  count("altup.router_norm.weight", {width}, WeightRole::norm, layers);
  count("laurel.left.weight", {rank, width}, WeightRole::mlp, layers);
  count("laurel.right.weight", {width, rank}, WeightRole::mlp, layers);
  count("laurel.norm.weight", {width}, WeightRole::norm, layers);
  count("altup.projections.weight", {width, width}, WeightRole::embedding, 2 * (inputs - 1));
  spec.assumptions.emplace_back("AltUp and Laurel count as parameters, without FLOPs");
}

void read_gemma3n_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = gemma4_defaults();
  defaults.max_position_embeddings = 32768;
  defaults.num_key_value_heads = 2;
  defaults.rope.theta = 1e6;
  const std::vector<std::int64_t> widths = config.list_of_counts("intermediate_size");
  if (!widths.empty()) defaults.intermediate_size = widths.front();
  if (std::ranges::any_of(widths, [&](std::int64_t width) { return width != widths.front(); })) {
    config.fail("intermediate_size", "differs between layers", "use one size for all layers");
  }
  read_base(config, spec, defaults);
  read_soft_cap(config, spec, 30);
  read_per_layer_inputs(config, spec);
  config.ignore({"rope_parameters", "rope_local_base_freq"});  // values only, and not run
  spec.not_run = "its alternating updates have no kernels yet";
  StackSpec& stack = *spec.decoder;
  const auto rule = [](std::int64_t layer) { return (layer + 1) % 5 != 0; };
  set_windows(stack, read_windowed_layers(config, stack.num_layers, rule),
              read_window(config, 512));
  vary_layers(stack, read_own_key_values(config, stack.num_layers, 15),
              [](LayerVariant& variant) { variant.self_attention.shares_key_values = true; });
  count_altup(config, spec);
}

constexpr NameRule kGemma4[] = {
    {"per_layer_embeddings.word_embeddings.%", "embed_tokens_per_layer.%"},
    {"per_layer_embeddings.projection.%", "per_layer_model_projection.%"},
    {"per_layer_embeddings.norm.%", "per_layer_projection_norm.%"},
    {"decoder.layers.per_layer_input.gate.%", "layers.{}.per_layer_input_gate.%"},
    {"decoder.layers.per_layer_input.projection.%", "layers.{}.per_layer_projection.%"},
    {"decoder.layers.per_layer_input_norm.%", "layers.{}.post_per_layer_input_norm.%"},
    {"decoder.layers.layer_scalar", "layers.{}.layer_scalar"},
    {"decoder.layers.mlp.dense_norm.%", "layers.{}.post_feedforward_layernorm_1.%"},
    {"decoder.layers.mlp.experts_norm.%", "layers.{}.pre_feedforward_layernorm_2.%"},
    {"decoder.layers.mlp.experts_output_norm.%", "layers.{}.post_feedforward_layernorm_2.%"},
    {"decoder.layers.mlp.router_norm.weight", "layers.{}.router.scale"},
    {"decoder.layers.mlp.router.expert_scale", "layers.{}.router.per_expert_scale"},
    {"decoder.layers.mlp.router.%", "layers.{}.router.proj.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.experts.down_proj", stacked_experts()},
};

NameTable gemma4_names() {
  NameTable names = llama_names({kGemma4, sandwich_norm_rules(), query_key_norm_rules()});
  for (const char* const unused : {"self_attn.k_proj.weight", "self_attn.v_proj.weight",
                                   "self_attn.k_norm.weight", "self_attn.v_norm.weight"}) {
    names.extras.push_back({unused, ExtraKind::unused_key_values});
  }
  return names;
}

}  // namespace

std::vector<Family> gemma4_families() {
  return {{.model_types = {"gemma3n_text"},
           .classes = decoder_classes("Gemma3n", {.tied = true, .float32_logits = true}),
           .reader = read_gemma3n_text,
           .names = None("headroom counts this model but cannot run it"),
           .gguf = None("not supported yet")},
          {.model_types = {"gemma4_text"},
           .classes = decoder_classes("Gemma4", {.tied = true, .float32_logits = true}),
           .reader = read_gemma4_text,
           .names = gemma4_names(),
           .gguf = None("not supported yet")},
          wrapper_family({.model_types = {"gemma4"},
                          .classes = {"Gemma4ForConditionalGeneration"},
                          .bare_classes = {},
                          .text_type = "gemma4_text",
                          .count_towers = count_gemma4_tower})};
}

}  // namespace headroom::detail
