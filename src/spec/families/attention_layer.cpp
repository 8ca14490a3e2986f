// One multi-head attention layer on its own (arXiv 1706.03762, section 3.2), for which d_k, d_v and
// d_model / heads may all differ.
#include "../family.h"

namespace headroom::detail {

void read_attention_layer(ConfigReader& config, ModelSpec& spec) {
  read_architecture(config, spec, {{"MultiHeadAttention", {}}});
  spec.kind = ModelKind::attention_layer;
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  spec.embedding.input = InputKind::hidden_states;

  StackSpec stack;
  stack.num_layers = config.size_or({"num_hidden_layers"}, 1);
  AttentionSpec& attention = stack.self_attention;
  attention.kind = config.choice_or<AttentionKind>(
      {"attention_kind"}, {{"softmax", AttentionKind::softmax}, {"linear", AttentionKind::linear}},
      AttentionKind::softmax);
  attention.num_attention_heads = config.size({"num_attention_heads", "nhead"});
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = config.size({"head_dim", "d_k"});
  attention.value_head_dim = config.size_or({"value_head_dim", "d_v"}, attention.head_dim);
  attention.causal = config.flag_or({"is_causal"}, false);
  attention.qkv_bias = config.flag_or({"attention_bias"}, false);
  attention.output_bias = attention.qkv_bias;
  stack.norm_placement = NormPlacement::none;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  (attention.causal ? spec.decoder : spec.encoder) = stack;
}

}  // namespace headroom::detail
