// MPT.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kMpt[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "blocks.{}.norm_1.%"},
    {"decoder.layers.mlp_norm.%", "blocks.{}.norm_2.%"},
    {"decoder.layers.attention.query.%", "blocks.{}.attn.Wqkv.%", part(0)},
    {"decoder.layers.attention.key.%", "blocks.{}.attn.Wqkv.%", part(1)},
    {"decoder.layers.attention.value.%", "blocks.{}.attn.Wqkv.%", part(2)},
    {"decoder.layers.attention.output.%", "blocks.{}.attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "blocks.{}.ffn.up_proj.%"},
    {"decoder.layers.mlp.down.%", "blocks.{}.ffn.down_proj.%"},
    {"decoder.final_norm.%", "norm_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable mpt_names(const ModelSpec& /*spec*/) {
  return {{kMpt}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
