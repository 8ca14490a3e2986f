// Where every activation lies: one arena, laid out before the run by when tensors live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headroom/graph.h"

namespace headroom::measured {

/// Offsets into the arena, in floats. Tensors that are no activations, or belong to the caller,
/// have none.
struct MemoryPlan {
  static constexpr std::int64_t kNotInArena = -1;
  std::vector<std::int64_t> offsets;  ///< by TensorId
  std::int64_t arena_floats = 0;      ///< what the arena must hold
  std::int64_t peak_bytes = 0;        ///< most bytes that are handed out at once
};

/// Plans the arena for `graph` at sizes that bind all its symbols. An output takes the place of an
/// input that dies where the operator works in place.
[[nodiscard]] MemoryPlan plan_memory(const Graph& graph, const Bindings& sizes);

}  // namespace headroom::measured
