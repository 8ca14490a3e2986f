// GGUF: one set of names for all architectures.
// Source: TENSOR_NAMES in gguf-py/gguf/constants.py, github.com/ggml-org/llama.cpp.
#include "names.h"
#include "stored_form.h"

namespace headroom::detail {
namespace {

constexpr NameRule kEncoderDecoder[] = {
    {"encoder.embeddings.word_embeddings.%", "token_embd.%"},
    {"encoder.relative_attention_bias.%", "enc.blk.0.attn_rel_b.%"},
    {"encoder.layers.attention_norm.%", "enc.blk.{}.attn_norm.%"},
    {"encoder.layers.attention.query.%", "enc.blk.{}.attn_q.%"},
    {"encoder.layers.attention.key.%", "enc.blk.{}.attn_k.%"},
    {"encoder.layers.attention.value.%", "enc.blk.{}.attn_v.%"},
    {"encoder.layers.attention.output.%", "enc.blk.{}.attn_o.%"},
    {"encoder.layers.mlp_norm.%", "enc.blk.{}.ffn_norm.%"},
    {"encoder.layers.mlp.gate.%", "enc.blk.{}.ffn_gate.%"},
    {"encoder.layers.mlp.up.%", "enc.blk.{}.ffn_up.%"},
    {"encoder.layers.mlp.down.%", "enc.blk.{}.ffn_down.%"},
    {"encoder.final_norm.%", "enc.output_norm.%"},
    {"decoder.relative_attention_bias.%", "dec.blk.0.attn_rel_b.%"},
    {"decoder.layers.attention_norm.%", "dec.blk.{}.attn_norm.%"},
    {"decoder.layers.attention.query.%", "dec.blk.{}.attn_q.%"},
    {"decoder.layers.attention.key.%", "dec.blk.{}.attn_k.%"},
    {"decoder.layers.attention.value.%", "dec.blk.{}.attn_v.%"},
    {"decoder.layers.attention.output.%", "dec.blk.{}.attn_o.%"},
    {"decoder.layers.cross_attention_norm.%", "dec.blk.{}.cross_attn_norm.%"},
    {"decoder.layers.cross_attention.query.%", "dec.blk.{}.cross_attn_q.%"},
    {"decoder.layers.cross_attention.key.%", "dec.blk.{}.cross_attn_k.%"},
    {"decoder.layers.cross_attention.value.%", "dec.blk.{}.cross_attn_v.%"},
    {"decoder.layers.cross_attention.output.%", "dec.blk.{}.cross_attn_o.%"},
    {"decoder.layers.mlp_norm.%", "dec.blk.{}.ffn_norm.%"},
    {"decoder.layers.mlp.gate.%", "dec.blk.{}.ffn_gate.%"},
    {"decoder.layers.mlp.up.%", "dec.blk.{}.ffn_up.%"},
    {"decoder.layers.mlp.down.%", "dec.blk.{}.ffn_down.%"},
    {"decoder.final_norm.%", "dec.output_norm.%"},
    {"head.language_model.%", "output.%"},
};

// GGUF concatenates fused projections, whatever their order in the original checkpoint.
constexpr NameRule kOneStack[] = {
    {"embeddings.word_embeddings.%", "token_embd.%"},
    {"embeddings.position_embeddings.%", "position_embd.%"},
    {"embeddings.token_type_embeddings.%", "token_types.%"},
    {"embeddings.norm.%", "token_embd_norm.%"},
    {"layers.attention_norm.%", "blk.{}.attn_norm.%"},
    {"layers.attention_norm.%", "blk.{}.attn_output_norm.%"},
    {"layers.attention_norm.%", "blk.{}.post_attention_norm.%"},
    {"layers.attention_output_norm.%", "blk.{}.post_attention_norm.%"},
    {"layers.attention.query.%", "blk.{}.attn_q.%"},
    {"layers.attention.key.%", "blk.{}.attn_k.%"},
    {"layers.attention.value.%", "blk.{}.attn_v.%"},
    {"layers.attention.query.%", "blk.{}.attn_q_b.%"},  // DeepSeek's latent attention
    {"layers.attention.query_a.%", "blk.{}.attn_q_a.%"},
    {"layers.attention.query_a_norm.%", "blk.{}.attn_q_a_norm.%"},
    {"layers.attention.key_value_a.%", "blk.{}.attn_kv_a_mqa.%"},
    {"layers.attention.key_value_a_norm.%", "blk.{}.attn_kv_a_norm.%"},
    {"layers.attention.key_value.%", "blk.{}.attn_kv_b.%"},
    {"layers.attention.query.%", "blk.{}.attn_qkv.%", part(0)},
    {"layers.attention.key.%", "blk.{}.attn_qkv.%", part(1)},
    {"layers.attention.value.%", "blk.{}.attn_qkv.%", part(2)},
    {"layers.attention.query_norm.%", "blk.{}.attn_q_norm.%"},
    {"layers.attention.key_norm.%", "blk.{}.attn_k_norm.%"},
    {"layers.attention.sinks", "blk.{}.attn_sinks.weight"},
    {"layers.attention.output.%", "blk.{}.attn_output.%"},
    {"layers.mlp_norm.%", "blk.{}.ffn_norm.%"},
    {"layers.mlp_norm.%", "blk.{}.layer_output_norm.%"},
    {"layers.mlp_norm.%", "blk.{}.post_ffw_norm.%"},
    {"layers.mlp_norm.%", "blk.{}.post_attention_norm.%"},
    {"layers.mlp_norm.%", "blk.{}.attn_norm_2.%"},
    {"layers.mlp_output_norm.%", "blk.{}.post_ffw_norm.%"},
    {"layers.mlp.gate.%", "blk.{}.ffn_gate.%"},
    {"layers.mlp.up.%", "blk.{}.ffn_up.%"},
    {"layers.mlp.gate.%", "blk.{}.ffn_up.%", part(0)},
    {"layers.mlp.up.%", "blk.{}.ffn_up.%", part(1)},
    {"layers.mlp.down.%", "blk.{}.ffn_down.%"},
    {"layers.mlp.router.%", "blk.{}.ffn_gate_inp.%"},
    {"layers.mlp.router.correction_bias", "blk.{}.exp_probs_b.bias"},
    {"layers.mlp.experts.gate.%", "blk.{}.ffn_gate_exps.%", stacked_experts()},
    {"layers.mlp.experts.up.%", "blk.{}.ffn_up_exps.%", stacked_experts()},
    {"layers.mlp.experts.down.%", "blk.{}.ffn_down_exps.%", stacked_experts()},
    // Gemma 4's, and with the converter's option to fuse both.
    {"layers.mlp.experts.gate.%", "blk.{}.ffn_gate_up_exps.%", stacked_experts(part(0))},
    {"layers.mlp.experts.up.%", "blk.{}.ffn_gate_up_exps.%", stacked_experts(part(1))},
    {"layers.mlp.experts.gate.%",
     "blk.{}.ffn_gate.{e}.%"},  // old Mixtral files, one tensor per expert
    {"layers.mlp.experts.up.%", "blk.{}.ffn_up.{e}.%"},
    {"layers.mlp.experts.down.%", "blk.{}.ffn_down.{e}.%"},
    {"layers.mlp.shared_expert.gate.%", "blk.{}.ffn_gate_shexp.%"},
    {"layers.mlp.shared_expert.up.%", "blk.{}.ffn_up_shexp.%"},
    {"layers.mlp.shared_expert.down.%", "blk.{}.ffn_down_shexp.%"},
    {"layers.mlp.shared_expert_gate.%", "blk.{}.ffn_gate_inp_shexp.%"},
    {"layers.attention.indexer.query.%", "blk.{}.indexer.attn_q_b.%"},
    {"layers.attention.indexer.key.%", "blk.{}.indexer.attn_k.%"},
    {"layers.attention.indexer.key_norm.%", "blk.{}.indexer.k_norm.%"},
    {"layers.attention.indexer.weights.%", "blk.{}.indexer.proj.%"},
    {"layers.attention.gate.%", "blk.{}.attn_gate.%"},
    {"layers.mlp.latent.down.%", "blk.{}.ffn_latent_down.%"},
    {"layers.mlp.latent.up.%", "blk.{}.ffn_latent_up.%"},
    {"layers.mixer.convolution.%", "blk.{}.ssm_conv1d.%"},
    {"layers.mixer.dt_bias", "blk.{}.ssm_dt.bias"},
    {"layers.mixer.a_log", "blk.{}.ssm_a"},
    {"layers.mixer.d", "blk.{}.ssm_d"},
    {"layers.mixer.norm.%", "blk.{}.ssm_norm.%"},
    {"layers.mixer.out.%", "blk.{}.ssm_out.%"},
    {"final_norm.%", "output_norm.%"},
    {"head.language_model.%", "output.%"},
    {"head.classifier.%", "cls.output.%"},
};

/// True if some layers read the keys and values of an earlier one; files hold theirs all the same.
bool shares_key_values(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (stack.attention_of(variant).shares_key_values) return true;
  }
  return false;
}

bool mixes_time(const ModelSpec& spec) {
  return spec.main_stack().self_attention.kind == AttentionKind::time_mix;
}

}  // namespace

NameTable gguf_name_table(const ModelSpec& spec) {
  NameTable table;
  table.rules = gguf_rules(spec);
  if (spec.encoder) table.rules.emplace_back(kEncoderDecoder);  // T5's encoder alone has them too
  table.rules.emplace_back(kOneStack);
  table.extras = {{"output.weight", ExtraKind::tied_copy, NamePart::beginning},
                  {"rope_freqs.weight", ExtraKind::rotary_buffer},
                  {"rope_factors_long.weight", ExtraKind::rotary_buffer},
                  {"rope_factors_short.weight", ExtraKind::rotary_buffer},
                  {"exp_probs_b.bias", ExtraKind::router_bias},
                  {"attn_rot_embd.weight", ExtraKind::rotary_buffer}};
  // The converter copies other tensors of the first layer there, which has no such weights.
  if (mixes_time(spec)) {
    table.extras.push_back({"blk.0.time_mix_v", ExtraKind::unused_key_values, NamePart::beginning});
  }
  if (shares_key_values(spec)) {
    for (const char* const unused : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"}) {
      table.extras.push_back({unused, ExtraKind::unused_key_values});
    }
  }
  return table;
}

}  // namespace headroom::detail
