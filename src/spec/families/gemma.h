// Reader of Gemma 2's config, of which T5Gemma has two.
#pragma once

#include "../config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads Gemma 2's keys into `spec`, which has its head: layers into `spec.decoder`.
void read_gemma2(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
