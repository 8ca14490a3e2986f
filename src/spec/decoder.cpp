#include "decoder.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom::detail {
namespace {

void read_bias(ConfigReader& config, const DecoderDefaults& defaults, AttentionSpec& attention) {
  switch (defaults.bias) {
    case BiasRule::none:
      return;
    case BiasRule::query_key_value:
      attention.qkv_bias = true;
      return;
    case BiasRule::all:
      attention.qkv_bias = true;
      attention.output_bias = true;
      return;
    case BiasRule::key_for_all:
      attention.qkv_bias = config.flag_or({"attention_bias"}, defaults.bias_when_absent);
      attention.output_bias = attention.qkv_bias;
      return;
    case BiasRule::key_for_query_key_value:
      attention.qkv_bias = config.flag_or({"attention_bias"}, defaults.bias_when_absent);
      return;
  }
}

/// A required size, unless the family has a default for it.
std::int64_t size(ConfigReader& config, std::string_view key, const DecoderDefaults& defaults,
                  std::int64_t DecoderDefaults::Sizes::*absent) {
  return defaults.sizes ? config.size_or_of_class({key}, (*defaults.sizes).*absent)
                        : config.size({key});
}

/// `intermediate_size`; a list, one entry per layer, is read by the family.
std::int64_t inner_size(ConfigReader& config, const DecoderDefaults& defaults) {
  if (!defaults.intermediate_size) {
    return size(config, "intermediate_size", defaults, &DecoderDefaults::Sizes::intermediate_size);
  }
  const bool listed = !config.list_of_counts("intermediate_size").empty();
  return listed ? *defaults.intermediate_size
                : config.count_or({"intermediate_size"}, *defaults.intermediate_size);
}

ActivationKind activation_of(ConfigReader& config, const DecoderDefaults& defaults) {
  if (!defaults.fixed_activation) {
    return read_activation(config, {"hidden_act", "hidden_activation"}, defaults.activation);
  }
  config.ignore({"hidden_act"});
  return *defaults.fixed_activation;
}

/// Reads RoPE. Heads of a class's own defaults may not divide the hidden size, and their dimensions
/// not form pairs; such a model is counted and does not run.
void read_rope_of_heads(ConfigReader& config, ModelSpec& spec, const AttentionSpec& attention,
                        const DecoderDefaults& defaults) {
  constexpr std::int64_t kPaired = 4;  // also half of these form pairs
  const std::int64_t head_dim = attention.head_dim;
  const bool uneven = defaults.head_size != HeadSizeRule::divides && !config.has("head_dim") &&
                      head_dim >= kPaired && spec.hidden_size % attention.num_attention_heads != 0;
  const std::int64_t paired = uneven ? head_dim / kPaired * kPaired : head_dim;
  RopeSpec& rope = spec.position.rope;
  rope = read_rope(config, spec.position, paired, defaults.rope);
  if (!uneven || defaults.head_size == HeadSizeRule::own) return;
  if (rope.rotary_dim == 0) rope.rotary_dim = paired;
  spec.not_run = "its heads do not divide its hidden size";
}

std::int64_t layers_of(ConfigReader& config, const DecoderDefaults& defaults) {
  std::optional<std::int64_t> absent = defaults.num_hidden_layers;
  if (defaults.sizes) absent = defaults.sizes->num_hidden_layers;
  return absent ? config.layers_or({"num_hidden_layers"}, *absent)
                : config.layers({"num_hidden_layers"});
}

}  // namespace

AttentionSpec read_heads(ConfigReader& config, std::int64_t hidden_size,
                         const DecoderDefaults& defaults) {
  const std::int64_t heads =
      size(config, "num_attention_heads", defaults, &DecoderDefaults::Sizes::num_attention_heads);
  const bool null_means_all = config.is_null("num_key_value_heads");
  const std::int64_t absent = null_means_all ? heads : defaults.num_key_value_heads.value_or(heads);
  const bool is_of_class = !null_means_all && defaults.num_key_value_heads.has_value();
  const std::int64_t kv_heads = is_of_class
                                    ? config.size_or_of_class({"num_key_value_heads"}, absent)
                                    : config.size_or({"num_key_value_heads"}, absent);
  if (heads % kv_heads != 0) {
    config.fail("num_key_value_heads",
                fmt::format("{} key-value heads do not divide {} query heads", kv_heads, heads),
                "use a number that divides num_attention_heads");
  }
  const bool is_own = defaults.head_size == HeadSizeRule::own;  // whatever head_dim says
  auto head_dim = is_own ? std::nullopt : config.optional_size({"head_dim"});
  if (!head_dim && !is_own && !config.is_null("head_dim") && defaults.head_dim) {
    head_dim = config.size_or_of_class({"head_dim"}, *defaults.head_dim);
  }
  if (!head_dim && defaults.head_size != HeadSizeRule::divides) {
    head_dim = std::max<std::int64_t>(hidden_size / heads, 1);
  }
  AttentionSpec attention;
  if (head_dim) {
    attention.num_attention_heads = heads;
    attention.head_dim = *head_dim;
    attention.value_head_dim = *head_dim;
  } else {
    attention = multi_head_attention(config, "num_attention_heads", heads, hidden_size);
  }
  attention.num_key_value_heads = kv_heads;
  attention.causal = true;
  attention.softmax = SoftmaxPrecision::float32;
  return attention;
}

void read_decoder(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults) {
  spec.kind = ModelKind::decoder;
  using Sizes = DecoderDefaults::Sizes;
  spec.hidden_size = size(config, "hidden_size", defaults, &Sizes::hidden_size);
  spec.embedding.vocab_size = size(config, "vocab_size", defaults, &Sizes::vocab_size);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings =
      config.size_or({"max_position_embeddings"}, defaults.max_position_embeddings);

  StackSpec stack;
  stack.num_layers = layers_of(config, defaults);
  stack.self_attention = read_heads(config, spec.hidden_size, defaults);
  read_bias(config, defaults, stack.self_attention);
  // Every decoder of transformers sees both sides if its config says so (masking_utils.py).
  stack.self_attention.causal = config.flag_or({"is_causal"}, true);
  read_rope_of_heads(config, spec, stack.self_attention, defaults);
  const std::int64_t inner = inner_size(config, defaults);
  stack.ffn = {defaults.ffn, inner, activation_of(config, defaults), false};
  stack.norm_placement = NormPlacement::pre;
  stack.norm = defaults.norm;
  stack.norm.eps =
      config.number_or({"rms_norm_eps", "layer_norm_eps", "norm_epsilon"}, defaults.norm_eps);
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  // Training losses, caches and calling conventions.
  config.ignore({"output_router_logits", "router_aux_loss_coef", "router_jitter_noise",
                 "router_z_loss_coef", "aux_loss_alpha", "seq_aux", "cache_implementation",
                 "use_bidirectional_attention"});
  spec.decoder = stack;
}

WindowSpec read_window(ConfigReader& config, std::int64_t when_absent) {
  const std::int64_t absent = config.is_null("sliding_window") ? 0 : when_absent;
  const std::int64_t size = config.count_or({"sliding_window"}, absent);
  if (size == 0) return {};
  return {WindowKind::sliding, size};
}

WindowSpec read_required_window(ConfigReader& config, std::int64_t when_absent) {
  const WindowSpec window = read_window(config, when_absent);
  if (window.kind == WindowKind::none) {
    config.fail("sliding_window", "is no window for the sliding layers", "write its size");
  }
  return window;
}

ModelClasses llama_classes(const std::string& prefix) {
  return decoder_classes(prefix, {.float32_logits = true});
}

void read_text_config(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes,
                      const std::function<void(ConfigReader& text, ModelSpec& spec)>& read) {
  ConfigReader text = config.object_or_empty("text_config");
  config.ignore_keys_of(text);
  text.use_class_sizes(text.text_or({"model_type"}, spec.model_type + "_text"));
  const std::string architecture = spec.architecture;
  read_default_class(text, spec, classes);
  spec.architecture = architecture;
  read(text, spec);
  read_common_keys(text, spec);
  text.finish();
}

ExpertsSpec read_experts(ConfigReader& config, const ExpertKeys& keys) {
  const auto size = [&](ConfigReader::Keys names, std::int64_t absent) {
    return absent == 0 ? config.size(names) : config.size_or_of_class(names, absent);
  };
  ExpertsSpec experts;
  experts.num_experts = size(keys.num_experts, keys.num_experts_when_absent);
  experts.num_experts_per_tok = size({"num_experts_per_tok"}, keys.per_token_when_absent);
  if (experts.num_experts_per_tok > experts.num_experts) {
    config.fail("num_experts_per_tok",
                fmt::format("{} experts per token exceed {} experts", experts.num_experts_per_tok,
                            experts.num_experts),
                "use at most the number of experts");
  }
  return experts;
}

void set_experts(StackSpec& stack, const std::vector<bool>& routed, const ExpertsSpec& experts) {
  std::vector<bool> dense = routed;
  dense.flip();
  vary_layers(stack, dense, [&](LayerVariant& variant) { variant.ffn.experts = experts; });
}

void spread_qwen_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                         std::vector<std::int64_t> dense) {
  const std::int64_t step = config.size_or({"decoder_sparse_step"}, 1);
  if (config.is_list("mlp_only_layers")) dense = config.counts("mlp_only_layers");
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const bool named = std::ranges::find(dense, layer) != dense.end();
    routed.push_back(!named && (layer + 1) % step == 0);
  }
  set_experts(stack, routed, experts);
}

void read_qwen_windows(ConfigReader& config, StackSpec& stack) {
  const bool used = config.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(config, 4096);
  const std::int64_t full_layers = config.count_or({"max_window_layers"}, 28);
  const auto rule = [&](std::int64_t layer) { return used && layer >= full_layers; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  set_windows(stack, windowed, used ? window : WindowSpec{});
}

std::vector<bool> read_rotary_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::int64_t interval = config.size_or({"no_rope_layer_interval"}, 4);
  const std::vector<std::int64_t> named = config.counts("no_rope_layers");
  std::vector<bool> rotary;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    rotary.push_back((layer + 1) % interval != 0);
  }
  if (named.empty()) return rotary;
  config.require_one_per_layer("no_rope_layers", named.size(), num_layers,
                               "write 1 or 0 for each of num_hidden_layers");
  for (std::size_t layer = 0; layer < named.size(); ++layer) rotary[layer] = named[layer] != 0;
  return rotary;
}

std::vector<bool> read_full_attention_layers(ConfigReader& config, std::int64_t num_layers,
                                             std::initializer_list<std::string_view> others,
                                             const std::function<bool(std::int64_t)>& rule) {
  const std::vector<std::string> types = config.texts("layer_types");
  std::vector<bool> full;
  if (types.empty()) {
    for (std::int64_t layer = 0; layer < num_layers; ++layer) full.push_back(rule(layer));
    return full;
  }
  config.require_one_per_layer("layer_types", types.size(), num_layers,
                               "write one type for each of num_hidden_layers");
  for (const std::string& type : types) {
    full.push_back(type == "full_attention");
    if (!full.back() && std::ranges::find(others, type) == others.end()) {
      config.fail("layer_types", fmt::format("\"{}\" is not supported", type),
                  fmt::format("use full_attention or {}", *others.begin()));
    }
  }
  return full;
}

std::vector<bool> read_windowed_layers(ConfigReader& config, std::int64_t num_layers,
                                       const std::function<bool(std::int64_t)>& rule) {
  std::vector<bool> windowed =
      read_full_attention_layers(config, num_layers, {"sliding_attention", "chunked_attention"},
                                 [&](std::int64_t layer) { return !rule(layer); });
  windowed.flip();
  return windowed;
}

void vary_layers(StackSpec& stack, const std::vector<bool>& first,
                 const std::function<void(LayerVariant&)>& change) {
  // Each existing variant may occur changed and unchanged.
  const std::size_t before = stack.variants.size() + 1;
  if (std::ranges::find(first, false) == first.end()) return;
  const bool all_change = std::ranges::find(first, true) == first.end() && stack.variants.empty();
  if (all_change) {
    LayerVariant changed{stack.self_attention, stack.ffn};
    change(changed);
    stack.self_attention = std::move(changed.self_attention);
    stack.ffn = changed.ffn;
    return;
  }
  for (std::size_t variant = 0; variant < before; ++variant) {
    LayerVariant changed{stack.attention_of(variant), stack.ffn_of(variant)};
    change(changed);
    stack.variants.push_back(std::move(changed));
  }
  std::vector<std::size_t> of_layer;
  for (std::size_t layer = 0; layer < first.size(); ++layer) {
    const std::size_t own = stack.variant(static_cast<std::int64_t>(layer));
    of_layer.push_back(first[layer] ? own : own + before);
  }
  stack.variant_of_layer = std::move(of_layer);
}

void set_windows(StackSpec& stack, const std::vector<bool>& windowed, const WindowSpec& window) {
  if (window.kind == WindowKind::none) return;
  std::vector<bool> full = windowed;
  full.flip();
  vary_layers(stack, full, [&](LayerVariant& variant) { variant.self_attention.window = window; });
}

}  // namespace headroom::detail
