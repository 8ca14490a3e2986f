// StarCoder2.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kStarcoder2[] = {
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.c_fc.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.c_proj.%"},
};

}  // namespace

NameTable starcoder2_names(const ModelSpec& /*spec*/) {
  return {{kStarcoder2, llama_rules()}, {"model."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
