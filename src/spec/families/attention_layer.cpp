// A single multi-head attention layer (arXiv 1706.03762, section 3.2) in which d_k, d_v and d_model
// / heads may differ: self-attention, causal, windowed or full, with softmax or linear; or
// cross-attention to a second sequence.
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

AttentionSpec read_heads(ConfigReader& config) {
  AttentionSpec attention;
  attention.num_attention_heads = config.size({"num_attention_heads", "nhead"});
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = config.size({"head_dim", "d_k"});
  attention.value_head_dim = config.size_or({"value_head_dim", "d_v"}, attention.head_dim);
  attention.qkv_bias = config.flag_or({"attention_bias"}, false);
  attention.output_bias = attention.qkv_bias;
  return attention;
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

StackSpec bare_stack(ConfigReader& config, AttentionSpec attention) {
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_hidden_layers"}, 1);
  stack.self_attention = std::move(attention);
  stack.norm_placement = NormPlacement::none;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  return stack;
}

void read_attention_layer(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::attention_layer;
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  spec.embedding.input = InputKind::hidden_states;
  AttentionSpec attention = read_heads(config);
  attention.kind = config.choice_or<AttentionKind>(
      {"attention_kind"}, {{"softmax", AttentionKind::softmax}, {"linear", AttentionKind::linear}},
      AttentionKind::softmax);
  attention.causal = config.flag_or({"is_causal"}, false);
  attention.window = read_window(config, attention);
  const bool causal = attention.causal;
  (causal ? spec.decoder : spec.encoder) = bare_stack(config, std::move(attention));
}

void read_cross_attention_layer(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::cross_attention_layer;
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  spec.embedding.input = InputKind::hidden_states;
  spec.encoder = bare_stack(config, read_heads(config));
  spec.encoder->cross_attention = spec.encoder->self_attention;
}

}  // namespace

std::vector<Family> attention_layer_families() {
  return {{.model_types = {"attention"},
           .classes = one_class("MultiHeadAttention"),
           .reader = read_attention_layer,
           .names = None("a single layer has only random weights"),
           .gguf = None("a single layer has no GGUF file")},
          {.model_types = {"cross_attention"},
           .classes = one_class("MultiHeadCrossAttention"),
           .reader = read_cross_attention_layer,
           .names = None("a single layer has only random weights"),
           .gguf = None("a single layer has no GGUF file")}};
}

}  // namespace headroom::detail
