// Stored names shared by several families.
#include "stored_names.h"

#include <utility>

namespace headroom::detail {
namespace {

constexpr NameRule kLlama[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.o_proj.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.down_proj.%"},
    {"decoder.final_norm.%", "norm.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "qa_outputs.%"},
    {"head.classifier.%", "classifier.%"},
};

constexpr NameRule kQueryKeyNorm[] = {
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_norm.%"},
};

constexpr NameRule kSandwich[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.pre_feedforward_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

constexpr NameRule kBert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.self.query.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.self.key.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.self.value.%"},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.output.dense.%"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.output.LayerNorm.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.intermediate.dense.%"},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.output.dense.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.output.LayerNorm.%"},
    {"encoder.layers.cross_attention.query.%", "encoder.layer.{}.crossattention.self.query.%"},
    {"encoder.layers.cross_attention.key.%", "encoder.layer.{}.crossattention.self.key.%"},
    {"encoder.layers.cross_attention.value.%", "encoder.layer.{}.crossattention.self.value.%"},
    {"encoder.layers.cross_attention.output.%", "encoder.layer.{}.crossattention.output.dense.%"},
    {"encoder.layers.cross_attention_norm.%", "encoder.layer.{}.crossattention.output.LayerNorm.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "cls.predictions.transform.dense.%"},
    {"head.transform.norm.%", "cls.predictions.transform.LayerNorm.%"},
    {"head.language_model.weight", "cls.predictions.decoder.weight"},
    {"head.language_model.bias", "cls.predictions.decoder.bias"},
    {"head.language_model.bias", "cls.predictions.bias"},
    {"head.unread_bias", "cls.predictions.bias"},
    {"head.classifier.dense.%", "classifier.dense.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
    {"head.classifier.%", "cls.seq_relationship.%"},
};

constexpr NameRule kBloom[] = {
    {"embeddings.word_embeddings.%", "word_embeddings.%"},
    {"embeddings.norm.%", "word_embeddings_layernorm.%"},
    {"decoder.layers.attention_norm.%", "h.{}.input_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.post_attention_layernorm.%"},
    {"decoder.layers.attention.query.%", "h.{}.self_attention.query_key_value.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "h.{}.self_attention.query_key_value.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "h.{}.self_attention.query_key_value.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "h.{}.self_attention.dense.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.dense_h_to_4h.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

constexpr NameRule kRoutedExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.gate.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.mlp.experts.{e}.gate_proj.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.mlp.experts.{e}.up_proj.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.mlp.experts.{e}.down_proj.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts()},
};

// Mixtral, PhiMoE and MiniMax-M2.
constexpr NameRule kMixtralExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.block_sparse_moe.gate.%"},
    {"decoder.layers.mlp.router.correction_bias",
     "layers.{}.block_sparse_moe.e_score_correction_bias"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.block_sparse_moe.experts.{e}.w1.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.block_sparse_moe.experts.{e}.w3.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.block_sparse_moe.experts.{e}.w2.%"},
    // Transformers 5 renames the block; in its PhiMoE class each expert still has its own tensors.
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.e_score_correction_bias"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.mlp.experts.{e}.w1.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.mlp.experts.{e}.w3.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.mlp.experts.{e}.w2.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.gate.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts()},
};

constexpr NameRule kGlm[] = {
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_self_attn_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_mlp_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_up_proj.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.gate_up_proj.%", part(1)},
};

constexpr NameRule kGraniteExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.block_sparse_moe.router.layer.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.block_sparse_moe.input_linear.%",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.block_sparse_moe.input_linear.%",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.block_sparse_moe.output_linear.%",
     stacked_experts()},
};

constexpr NameRule kRobertaHead[] = {
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.layer_norm.%"},
    {"head.language_model.weight", "lm_head.decoder.weight"},
    {"head.language_model.bias", "lm_head.decoder.bias"},
    {"head.language_model.bias", "lm_head.bias"},
    {"head.unread_bias", "lm_head.bias"},
    {"head.classifier.%", "classifier.out_proj.%"},
};

}  // namespace

std::span<const NameRule> llama_rules() { return kLlama; }

std::span<const NameRule> query_key_norm_rules() { return kQueryKeyNorm; }

std::span<const NameRule> sandwich_norm_rules() { return kSandwich; }

std::span<const NameRule> bert_rules() { return kBert; }

std::span<const NameRule> bloom_rules() { return kBloom; }

std::span<const NameRule> routed_expert_rules() { return kRoutedExperts; }

std::span<const NameRule> mixtral_expert_rules() { return kMixtralExperts; }

std::span<const NameRule> glm_rules() { return kGlm; }

std::span<const NameRule> granite_expert_rules() { return kGraniteExperts; }

NameTable llama_names(std::vector<std::span<const NameRule>> own) {
  own.push_back(kLlama);
  return {std::move(own), {"model.", "transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

NameTable roberta_names(std::string_view prefix, std::vector<std::span<const NameRule>> own) {
  own.insert(own.end(), {kRobertaHead, kBert});
  return {std::move(own),
          {prefix},
          {{"lm_head.decoder.weight", ExtraKind::tied_copy},
           {"lm_head.bias", ExtraKind::tied_copy},
           {"lm_head.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.dense.weight", ExtraKind::unused_head},
           {"pooler.dense.bias", ExtraKind::unused_head}}};
}

std::string_view name_of(ExtraKind kind) noexcept {
  switch (kind) {
    case ExtraKind::causal_mask:
      return "causal mask buffer";
    case ExtraKind::position_ids:
      return "position ids buffer";
    case ExtraKind::rotary_buffer:
      return "rotary buffer";
    case ExtraKind::router_bias:
      return "router bias buffer";
    case ExtraKind::kv_cache_scale:
      return "KV-cache scale";
    case ExtraKind::head_buffer:
      return "head's bias buffer";
    case ExtraKind::tied_copy:
      return "tied weight stored again";
    case ExtraKind::untied_head:
      return "untied head";
    case ExtraKind::unused_head:
      return "head that the model does not use";
    case ExtraKind::unused_key_values:
      return "keys and values that the layer does not use";
    case ExtraKind::unused_part:
      return "adapter or bias that the model does not use";
    case ExtraKind::unused_norm:
      return "norm that the layer does not use";
    case ExtraKind::layer_constant:
      return "constant of a layer";
    case ExtraKind::decay_buffer:
      return "decay buffer";
    case ExtraKind::multi_token_prediction:
      return "multi-token prediction layer";
    case ExtraKind::speech_output:
      return "talker or vocoder";
    case ExtraKind::vision_tower:
      return "vision or audio tower";
  }
  return "";
}

}  // namespace headroom::detail
