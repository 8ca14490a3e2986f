// A single multi-head attention layer (arXiv 1706.03762, section 3.2) in which d_k, d_v and d_model
// / heads may differ: self-attention, causal, windowed or full, with softmax or linear; or
// cross-attention to a second sequence. The output projection may be absent.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Section 3.2.1 divides the scores by √d_k; other texts divide them by √d_model.
void read_scale(ConfigReader& config, std::int64_t hidden_size, AttentionSpec& attention) {
  enum class Scale { inverse_sqrt_head_dim, inverse_sqrt_hidden_size, none };
  switch (config.choice_or<Scale>({"attention_scale"},
                                  {{"inverse_sqrt_head_dim", Scale::inverse_sqrt_head_dim},
                                   {"inverse_sqrt_hidden_size", Scale::inverse_sqrt_hidden_size},
                                   {"none", Scale::none}},
                                  Scale::inverse_sqrt_head_dim)) {
    case Scale::inverse_sqrt_head_dim:
      break;
    case Scale::inverse_sqrt_hidden_size:
      attention.scale = AttentionScale::fixed;
      attention.fixed_scale = 1 / std::sqrt(static_cast<double>(hidden_size));
      break;
    case Scale::none:
      attention.scale = AttentionScale::none;
      break;
  }
}

AttentionSpec read_heads(ConfigReader& config, std::int64_t hidden_size) {
  AttentionSpec attention;
  attention.num_attention_heads = config.size({"num_attention_heads", "nhead"});
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = config.size({"head_dim", "d_k"});
  attention.value_head_dim = config.size_or({"value_head_dim", "d_v"}, attention.head_dim);
  attention.qkv_bias = config.flag_or({"attention_bias"}, false);
  attention.output_projection = config.flag_or({"output_projection"}, true);
  attention.output_bias = attention.qkv_bias;
  read_scale(config, hidden_size, attention);
  return attention;
}

/// Refuses a key of softmax attention in a linear layer, and the other way round.
void require_own_keys(const ConfigReader& config, const AttentionSpec& attention) {
  const bool is_linear = attention.kind == AttentionKind::linear;
  if (is_linear && config.has("attention_scale")) {
    config.fail("attention_scale", "linear attention has no scores to divide",
                "remove it or use attention_kind softmax");
  }
  if (!is_linear && config.has("feature_map")) {
    config.fail("feature_map", "softmax attention has no feature map",
                "remove it or use attention_kind linear");
  }
}

/// Causal attention sees the last `sliding_window` keys; otherwise half as many on each side: the
/// neighbourhood r of arXiv 1706.03762, section 4.
WindowSpec read_window(ConfigReader& config, const AttentionSpec& attention) {
  const auto size = config.optional_size({"sliding_window"});
  if (!size) return {};
  if (attention.kind != AttentionKind::softmax) {
    config.fail("sliding_window", "linear attention has no window",
                "remove it or use attention_kind softmax");
  }
  if (attention.causal) return {WindowKind::sliding, *size};
  return {WindowKind::centred, *size / 2};
}

StackSpec bare_stack(ConfigReader& config, std::int64_t hidden_size, AttentionSpec attention) {
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_hidden_layers"}, 1);
  const std::int64_t context = product(config, "num_attention_heads", attention.num_attention_heads,
                                       attention.value_head_dim);
  if (!attention.output_projection && stack.num_layers > 1 && context != hidden_size) {
    config.fail("output_projection",
                fmt::format("a layer's output of {} values is not the next one's input of {}",
                            context, hidden_size),
                "use one layer, or heads whose values are as wide as hidden_size together");
  }
  stack.self_attention = std::move(attention);
  stack.norm_placement = NormPlacement::none;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  stack.dropout.attention_output = config.probability_or({"output_dropout"}, 0);
  return stack;
}

void read_attention_layer(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::attention_layer;
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  spec.embedding.input = InputKind::hidden_states;
  AttentionSpec attention = read_heads(config, spec.hidden_size);
  attention.kind = config.choice_or<AttentionKind>(
      {"attention_kind"}, {{"softmax", AttentionKind::softmax}, {"linear", AttentionKind::linear}},
      AttentionKind::softmax);
  require_own_keys(config, attention);
  attention.feature_map = read_feature_map(config);
  attention.causal = config.flag_or({"is_causal"}, false);
  attention.window = read_window(config, attention);
  const bool causal = attention.causal;
  (causal ? spec.decoder : spec.encoder) =
      bare_stack(config, spec.hidden_size, std::move(attention));
}

void read_cross_attention_layer(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::cross_attention_layer;
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  spec.embedding.input = InputKind::hidden_states;
  spec.encoder = bare_stack(config, spec.hidden_size, read_heads(config, spec.hidden_size));
  spec.encoder->cross_attention = spec.encoder->self_attention;
}

/// Rules for the paths of one attention's projections: packed as torch.nn.MultiheadAttention stores
/// them, or modules of their own; a stack numbers its layers.
constexpr std::array<NameRule, 14> rules_for(std::string_view query, std::string_view key,
                                             std::string_view value, std::string_view output) {
  return {{{query, "layers.{}.in_proj_%", part(0)},
           {key, "layers.{}.in_proj_%", part(1)},
           {value, "layers.{}.in_proj_%", part(2)},
           {query, "layers.{}.q_proj.%"},
           {key, "layers.{}.k_proj.%"},
           {value, "layers.{}.v_proj.%"},
           {output, "layers.{}.out_proj.%"},
           {query, "in_proj_%", part(0)},
           {key, "in_proj_%", part(1)},
           {value, "in_proj_%", part(2)},
           {query, "q_proj.%"},
           {key, "k_proj.%"},
           {value, "v_proj.%"},
           {output, "out_proj.%"}}};
}

constexpr auto kAttention =
    rules_for("attention.query.%", "attention.key.%", "attention.value.%", "attention.output.%");
constexpr auto kCrossAttention = rules_for("cross_attention.query.%", "cross_attention.key.%",
                                           "cross_attention.value.%", "cross_attention.output.%");

}  // namespace

std::vector<Family> attention_layer_families() {
  return {{.model_types = {"attention"},
           .classes = one_class("MultiHeadAttention"),
           .reader = read_attention_layer,
           .names = NameTable{{kAttention}, {}, {}},
           .gguf = None("a single layer has no GGUF file")},
          {.model_types = {"cross_attention"},
           .classes = one_class("MultiHeadCrossAttention"),
           .reader = read_cross_attention_layer,
           .names = NameTable{{kCrossAttention}, {}, {}},
           .gguf = None("a single layer has no GGUF file")}};
}

}  // namespace headroom::detail
