#include "gemm_tiles.h"

#include <algorithm>
#include <cmath>

namespace headroom::detail {
namespace {

/// A tile of a GEMM's output.
struct Tile {
  double rows;
  double columns;
  double rate = 1;  ///< fraction of the full rate
};

/// Tiles that reach the full rate: 256 × 128 and 128 × 256, "most efficient, but fewer tiles", and
/// 128 × 128 (the guide above, section 3.1; CUTLASS, docs/efficient_gemm).
constexpr double kRows = 128;
constexpr double kColumns = 128;
constexpr double kLong = 256;
/// A smaller tile reads twice the operands of 128 × 128 per product, so that it reaches about half
/// the rate; it is faster where few large tiles leave most processors idle.
constexpr double kSmall = 64;
constexpr double kSmallRate = 0.5;
/// Rows of one tensor-core instruction, to which tiles of few rows are cut (PTX ISA, mma.m16n8).
constexpr double kInstructionRows = 16;
/// Least inner dimension of a part of split-K: eight steps of 64.
constexpr double kLeastSplit = 512;

/// Arithmetic time of `tile` on all processors, in products of one multiplication deep.
double computed(const GemmSizes& sizes, const Tile& tile, double processors) {
  const double tiles = std::ceil(sizes.rows / sizes.count / tile.rows) *
                       std::ceil(sizes.out_features / tile.columns) * sizes.count;
  const double parts =
      std::max(1.0, std::min(std::floor(processors / tiles), sizes.in_features / kLeastSplit));
  const double waves = std::ceil(tiles / processors);
  return waves * processors * tile.rows * tile.columns / std::floor(parts) / tile.rate;
}

}  // namespace

std::optional<GemmExprs> gemm_of(const Op& op) {
  if (const auto* const linear = std::get_if<Linear>(&op)) {
    return GemmExprs{linear->rows, linear->in_features, linear->out_features, Integer{1}};
  }
  if (const auto* const experts = std::get_if<ExpertLinear>(&op)) {
    return GemmExprs{experts->rows * experts->per_token, experts->in_features,
                     experts->out_features, Symbol::experts_read};
  }
  return std::nullopt;
}

std::optional<GemmSizes> gemm_sizes(const Op& op, const Bindings& sizes) {
  const std::optional<GemmExprs> gemm = gemm_of(op);
  if (!gemm) return std::nullopt;
  const auto number = [&](const Expr& expr) { return static_cast<double>(expr.evaluate(sizes)); };
  return GemmSizes{number(gemm->rows), number(gemm->in_features), number(gemm->out_features),
                   number(gemm->count)};
}

double tiled_share(const GemmSizes& sizes, std::int64_t processors) {
  const double needed = sizes.rows * sizes.out_features;
  if (processors == 0 || needed <= 0 || sizes.count <= 0) return 1;
  const double rows = sizes.rows / sizes.count;
  const double few = std::min(kRows, kInstructionRows * std::ceil(rows / kInstructionRows));
  const auto all = static_cast<double>(processors);
  double least =
      std::min(computed(sizes, {few, kColumns}, all), computed(sizes, {few, kLong}, all));
  least = std::min(least, computed(sizes, {std::min(few, kSmall), kSmall, kSmallRate}, all));
  if (rows > kRows) least = std::min(least, computed(sizes, {kLong, kColumns}, all));
  return std::max(1.0, least / needed);
}

}  // namespace headroom::detail
