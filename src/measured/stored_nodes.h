// Sizes of operators whose weights stay as they are stored. Internal to src/measured.
#pragma once

#include <cstdint>

#include "headroom/graph.h"

namespace headroom::measured {

/// Number of experts of a Linear's or ExpertLinear's weights.
[[nodiscard]] std::int64_t stored_experts_of(const Node& node, const Bindings& sizes);

/// Size of their input.
[[nodiscard]] std::int64_t stored_inputs_of(const Node& node, const Bindings& sizes);

}  // namespace headroom::measured
