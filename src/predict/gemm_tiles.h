// Tiles of a GEMM and the waves in which a GPU's processors compute them. Internal to src/predict
// and src/plan.
#pragma once

#include <optional>

#include "headroom/machine_profile.h"
#include "headroom/op.h"

namespace headroom::detail {

/// `count` GEMMs of one kernel, between which `rows` divide evenly: one, or one for each of the
/// experts that a pass reads.
struct GemmExprs {
  Expr rows;
  Expr in_features;
  Expr out_features;
  Expr count;
};

struct GemmSizes {
  double rows = 0;
  double in_features = 0;
  double out_features = 0;
  double count = 1;
};

/// The GEMM of a Linear or ExpertLinear, which libraries run as one GEMM; empty for other
/// operators, whose products have kernels of their own.
[[nodiscard]] std::optional<GemmExprs> gemm_of(const Op& op);

/// Its values in a pass; empty likewise.
[[nodiscard]] std::optional<GemmSizes> gemm_sizes(const Op& op, const Bindings& sizes);

/// Time of a GEMM on `processors` over that of its arithmetic on all of them: at least 1.
/// Processors compute whole tiles, one at a time, and the last wave leaves some idle. Of the tiles
/// that libraries have, takes the fastest; a GEMM with fewer tiles than processors divides its
/// inner dimension between them (split-K). 1 with no or unknown processors (0). NVIDIA, Matrix
/// Multiplication Background User's Guide, sections 3.1 and 3.2.
[[nodiscard]] double tiled_share(const GemmSizes& sizes, std::int64_t processors);

}  // namespace headroom::detail
