// Weights that are stored as several tensors, with their logical shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/expr.h"
#include "model_files.h"
#include "packing.h"

namespace headroom::detail {

struct PackedWeight {
  Packing packing = Packing::scaled;
  std::string base;                 ///< common prefix of the names of its pieces
  std::string name;                 ///< of the unpacked tensor
  std::string type;                 ///< how it is stored: "GPTQ 4-bit"
  std::vector<std::int64_t> shape;  ///< unpacked
  Integer values = 0;
  Integer bytes = 0;                ///< of all its pieces
  std::vector<std::size_t> pieces;  ///< indices into the table of tensors
  /// The ends of the pieces' names, without scales of activations; "weight" for the tensor that
  /// has the weight's own name.
  std::vector<std::string_view> labels;
};

/// All packed weights, in the order of their first pieces. A tensor that has the name of a piece
/// but belongs to no packed weight stays a plain tensor.
[[nodiscard]] std::vector<PackedWeight> find_packed_weights(const checkpoint::ModelFiles& files);

}  // namespace headroom::detail
