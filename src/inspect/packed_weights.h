// Weights that several stored tensors make up together, by their logical shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headroom/integer.h"
#include "model_files.h"
#include "packing.h"

namespace headroom::detail {

struct PackedWeight {
  std::string name;                 ///< that it has when it is not packed
  std::string type;                 ///< how it is stored: "GPTQ 4-bit"
  std::vector<std::int64_t> shape;  ///< unpacked; empty where the files do not tell
  Integer values = 0;
  Integer bytes = 0;                ///< of all its pieces
  std::vector<std::size_t> pieces;  ///< indices into the table of tensors
};

/// All weights that are packed, in the order of their first pieces. Tensors with a piece's name and
/// no weight to be a piece of are left alone.
[[nodiscard]] std::vector<PackedWeight> find_packed_weights(const checkpoint::ModelFiles& files);

}  // namespace headroom::detail
