// Reader of Granite's decoders, dense, with experts or with state spaces.
#pragma once

#include "../config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads Llama's keys and Granite's multipliers into `spec`, which has its head: layers into
/// `spec.decoder`.
void read_granite_decoder(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
