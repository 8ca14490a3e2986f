// Reader of Mixtral's config, whose keys MiniMax has as well.
#pragma once

#include "../config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads Mixtral's keys into `spec`, which has its head: layers with experts into `spec.decoder`.
void read_mixtral(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
