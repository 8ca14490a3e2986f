#include "checkpoint_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "headroom/error.h"

namespace headroom::measured {
namespace {

using enum StoredLayout;

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
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "cls.predictions.transform.dense.%"},
    {"head.transform.norm.%", "cls.predictions.transform.LayerNorm.%"},
    {"head.language_model.weight", "cls.predictions.decoder.weight"},
    {"head.language_model.bias", "cls.predictions.bias"},
    {"head.classifier.dense.%", "classifier.dense.%"},
    {"head.classifier.%", "classifier.%"},
};
constexpr std::string_view kBertIgnored[] = {"position_ids", "cls.predictions.decoder.weight",
                                             "cls.predictions.decoder.bias"};

constexpr NameRule kRobertaHead[] = {
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.layer_norm.%"},
    {"head.language_model.weight", "lm_head.decoder.weight"},
    {"head.language_model.bias", "lm_head.bias"},
    {"head.classifier.%", "classifier.out_proj.%"},
};
constexpr std::string_view kRobertaIgnored[] = {"position_ids", "lm_head.decoder.weight",
                                                "lm_head.decoder.bias"};

constexpr NameRule kDistilbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "transformer.layer.{}.attention.q_lin.%"},
    {"encoder.layers.attention.key.%", "transformer.layer.{}.attention.k_lin.%"},
    {"encoder.layers.attention.value.%", "transformer.layer.{}.attention.v_lin.%"},
    {"encoder.layers.attention.output.%", "transformer.layer.{}.attention.out_lin.%"},
    {"encoder.layers.attention_norm.%", "transformer.layer.{}.sa_layer_norm.%"},
    {"encoder.layers.mlp.up.%", "transformer.layer.{}.ffn.lin1.%"},
    {"encoder.layers.mlp.down.%", "transformer.layer.{}.ffn.lin2.%"},
    {"encoder.layers.mlp_norm.%", "transformer.layer.{}.output_layer_norm.%"},
    {"head.transform.dense.%", "vocab_transform.%"},
    {"head.transform.norm.%", "vocab_layer_norm.%"},
    {"head.language_model.%", "vocab_projector.%"},
    {"head.classifier.dense.%", "pre_classifier.%"},
    {"head.classifier.%", "classifier.%"},
};
constexpr std::string_view kDistilbertIgnored[] = {"position_ids", "vocab_projector.weight"};

constexpr NameRule kGpt2[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%", transposed_third_0},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", transposed_third_1},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%", transposed_third_2},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%", transposed},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%", transposed},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%", transposed},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
};
constexpr std::string_view kGpt2Ignored[] = {"attn.bias", "attn.masked_bias", "lm_head.weight"};

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
};
constexpr std::string_view kLlamaIgnored[] = {"rotary_emb.inv_freq", "lm_head.weight"};

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
constexpr NameRule kT5Plain[] = {
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi.%"},
};
constexpr NameRule kT5Gated[] = {
    {"encoder.layers.mlp.gate.%", "encoder.block.{}.layer.1.DenseReluDense.wi_0.%"},
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi_1.%"},
    {"decoder.layers.mlp.gate.%", "decoder.block.{}.layer.2.DenseReluDense.wi_0.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi_1.%"},
};
constexpr std::string_view kT5Ignored[] = {"embed_tokens.weight", "lm_head.weight"};

constexpr NameRule kVit[] = {
    {"embeddings.patch_embeddings.%", "embeddings.patch_embeddings.projection.%"},
    {"embeddings.class_token", "embeddings.cls_token"},
    {"embeddings.position_embeddings.weight", "embeddings.position_embeddings"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.layernorm_before.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.attention.query.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.attention.key.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.attention.value.%"},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.output.dense.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.layernorm_after.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.intermediate.dense.%"},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.output.dense.%"},
    {"encoder.final_norm.%", "layernorm.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.classifier.%", "classifier.%"},
};

constexpr NameRule kTransformer[] = {
    {"encoder.embeddings.word_embeddings.%", "embedding.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.self_attn.in_proj_%", third_0},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.self_attn.in_proj_%", third_1},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.self_attn.in_proj_%", third_2},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.self_attn.out_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.linear1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.linear2.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"encoder.final_norm.%", "encoder.norm.%"},
    {"decoder.layers.attention.query.%", "decoder.layers.{}.self_attn.in_proj_%", third_0},
    {"decoder.layers.attention.key.%", "decoder.layers.{}.self_attn.in_proj_%", third_1},
    {"decoder.layers.attention.value.%", "decoder.layers.{}.self_attn.in_proj_%", third_2},
    {"decoder.layers.attention.output.%", "decoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.attention_norm.%", "decoder.layers.{}.norm1.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.multihead_attn.in_proj_%",
     third_0},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.multihead_attn.in_proj_%", third_1},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.multihead_attn.in_proj_%",
     third_2},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.multihead_attn.out_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.norm2.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.linear1.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.linear2.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.norm3.%"},
    {"decoder.final_norm.%", "decoder.norm.%"},
};

constexpr NameRule kLinearTransformer[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"embeddings.position_embeddings.%", "embed_positions.%"},
    {"layers.attention.query.%", "encoder.layers.{}.attention.query_projection.%"},
    {"layers.attention.key.%", "encoder.layers.{}.attention.key_projection.%"},
    {"layers.attention.value.%", "encoder.layers.{}.attention.value_projection.%"},
    {"layers.attention.output.%", "encoder.layers.{}.attention.out_projection.%"},
    {"layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"layers.mlp.up.%", "encoder.layers.{}.linear1.%"},
    {"layers.mlp.down.%", "encoder.layers.{}.linear2.%"},
    {"layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"final_norm.%", "encoder.norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

struct FamilyNames {
  std::string_view model_type;
  NameTable table;
};

const FamilyNames kFamilies[] = {
    {"bert", {{kBert, {}}, "bert.", kBertIgnored}},
    {"roberta", {{kRobertaHead, kBert}, "roberta.", kRobertaIgnored}},
    {"xlm-roberta", {{kRobertaHead, kBert}, "roberta.", kRobertaIgnored}},
    {"distilbert", {{kDistilbert, {}}, "distilbert.", kDistilbertIgnored}},
    {"gpt2", {{kGpt2, {}}, "transformer.", kGpt2Ignored}},
    {"llama", {{kLlama, {}}, "model.", kLlamaIgnored}},
    {"t5", {{kT5Plain, kT5}, "", kT5Ignored}},
    {"vit", {{kVit, {}}, "vit.", {}}},
    {"transformer", {{kTransformer, {}}, "", {}}},
    {"linear_transformer", {{kLinearTransformer, {}}, "", {}}},
};

constexpr std::string_view kKinds[] = {"weight", "bias"};

std::string replaced(std::string_view text, std::string_view placeholder,
                     const std::string& value) {
  std::string result(text);
  const auto at = result.find(placeholder);
  if (at != std::string::npos) result.replace(at, placeholder.size(), value);
  return result;
}

/// The stored name that `rule` gives `path`, where it fits.
std::optional<StoredName> apply(const NameRule& rule, std::string_view path, std::int64_t layer) {
  for (const std::string_view kind : kKinds) {
    const std::string word(kind);
    // Linear attention's encoder and decoder are stored under one name.
    const std::string canonical = replaced(rule.canonical, "%", word);
    const bool fits = path == canonical || path.ends_with("." + canonical);
    if (!fits) continue;
    return StoredName{replaced(replaced(rule.stored, "%", word), "{}", std::to_string(layer)),
                      rule.layout};
  }
  return std::nullopt;
}

}  // namespace

NameTable checkpoint_names(const ModelSpec& spec) {
  const auto* const found =
      std::ranges::find(kFamilies, std::string_view(spec.model_type), &FamilyNames::model_type);
  if (found == std::end(kFamilies)) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("models of type {} have no checkpoints", spec.model_type), spec.name,
                "use random weights");
  }
  NameTable table = found->table;
  const bool gated = spec.main_stack().ffn.kind == FfnKind::gated;
  if (spec.model_type == "t5" && gated) table.rules[0] = kT5Gated;
  return table;
}

StoredName stored_name(const NameTable& table, std::string_view path, std::int64_t layer) {
  for (const auto& rules : table.rules) {
    for (const NameRule& rule : rules) {
      if (auto name = apply(rule, path, layer)) return std::move(*name);
    }
  }
  throw Error(ErrorCode::internal, fmt::format("no stored name is known for {}", path));
}

}  // namespace headroom::measured
