// Activation arena: one allocation, laid out before the run from the lifetimes of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headroom/graph.h"

namespace headroom::measured {

/// Offsets into the arena, in floats. Tensors outside the arena (graph inputs, KV-cache) have
/// kNotInArena.
struct MemoryPlan {
  static constexpr std::int64_t kNotInArena = -1;
  std::vector<std::int64_t> offsets;  ///< by TensorId
  std::int64_t arena_floats = 0;      ///< size of the arena
  std::int64_t peak_bytes = 0;        ///< peak of live bytes
};

/// Plans the arena for `graph`; `sizes` must bind all its symbols. An in-place operator's output
/// reuses the buffer of an input whose last reader it is. Throws Error{overflow} for an arena of
/// 2^63 bytes or more.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const Bindings& sizes);

/// Size of that plan's arena in floats, however large.
[[nodiscard]] Integer arena_floats(const Graph& graph, const Bindings& sizes);

}  // namespace headroom::measured
