// Modules as quantisation methods tell them apart, from a graph's weights.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/graph.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// A weight as `experts` matrices [out, in]; a vector is one column.
struct MatrixSizes {
  std::int64_t experts = 1;
  std::int64_t out = 1;
  std::int64_t in = 1;
};

/// Sizes of one copy of `weight`, whose experts come first.
[[nodiscard]] MatrixSizes matrix_sizes(const Weight& weight, const Bindings& sizes);

/// Kind of the module that `weight` is the matrix of; `other` for vectors.
[[nodiscard]] ModuleKind module_kind(const Weight& weight, const MatrixSizes& sizes);

}  // namespace headroom::detail
