// GLM-4: Llama with interleaved rotary positions of half of each head; the later one with norms
// before and after (arXiv 2406.12793).
#include "../decoder.h"

namespace headroom::detail {
namespace {

void read_glm_like(ConfigReader& config, ModelSpec& spec, const std::string& prefix) {
  DecoderFamily family;
  family.prefix = prefix;
  family.num_key_value_heads = 2;
  family.head_dim = 128;
  family.max_position_embeddings = 131072;
  family.norm_eps = 1.5625e-7;
  family.rope.partial_rotary_factor = 0.5;
  family.rope.layout = RopeLayout::interleaved;
  family.bias = BiasRule::key_for_query_key_value;
  family.bias_when_absent = true;
  read_decoder(config, spec, family);
  config.ignore({"resid_pdrop"});
}

}  // namespace

void read_glm(ConfigReader& config, ModelSpec& spec) { read_glm_like(config, spec, "Glm"); }

void read_glm4(ConfigReader& config, ModelSpec& spec) {
  read_glm_like(config, spec, "Glm4");
  spec.decoder->norm_placement = NormPlacement::sandwich;
}

}  // namespace headroom::detail
