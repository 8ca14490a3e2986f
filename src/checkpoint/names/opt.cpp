// OPT.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kOpt[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"embeddings.position_embeddings.%", "embed_positions.%"},
    {"embeddings.projection.%", "project_in.%"},
    {"head.project_out.%", "project_out.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.self_attn_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.final_layer_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.fc2.%"},
    {"decoder.final_norm.%", "final_layer_norm.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable opt_names(const ModelSpec& /*spec*/) {
  return {{kOpt}, {"model.decoder.", "decoder."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
