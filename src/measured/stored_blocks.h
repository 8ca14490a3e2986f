// A weight in ggml's blocks.
#pragma once

#include <cstddef>

#include "ggml_type.h"
#include "kernels/aligned.h"

namespace headroom::measured {

/// A weight in ggml's blocks, row after row.
struct StoredBlocks {
  checkpoint::GgmlType type = checkpoint::GgmlType::q8_0;
  AlignedVector<std::byte> bytes{};
};

}  // namespace headroom::measured
