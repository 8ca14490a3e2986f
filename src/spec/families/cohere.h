// Decoders of Cohere: LayerNorm without bias, attention and FFN in parallel, scaled logits.
#pragma once

#include "../config_reader.h"
#include "../rope.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Defaults of a class; those of Command R unless set.
struct CohereDefaults {
  RopeDefaults rope{.layout = RopeLayout::interleaved};
  double logit_scale = 0.0625;
};

/// Reads the parts that the classes share, into a decoder whose layers are equal.
void read_cohere_like(ConfigReader& config, ModelSpec& spec, const CohereDefaults& class_defaults);

}  // namespace headroom::detail
