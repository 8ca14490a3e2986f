// RMS norm divides a row by the root of the mean of its squares (arXiv 1910.07467). Where ranks
// hold parts of a row, as of OLMo 2's queries (arXiv 2501.00656, section 3.1) or Mamba-2's gated
// output (arXiv 2405.21060, section 8.2), each sums its own squares and an all-reduce adds them.
// Mamba-2's norm of several groups needs none if each rank has whole groups.
#include "divided_norm.h"

#include <utility>

#include "op_exprs.h"

namespace headroom::detail {
namespace {

/// float32, as engines sum squares in it whatever the activations are.
constexpr Integer kSumBytes = 4;

Integer sums_per_row(NormKind kind) {
  switch (kind) {
    case NormKind::layer_norm:
      return 2;
    case NormKind::rms_norm:
      break;
  }
  return 1;
}

Collective sums_of(const NormSpec& spec, RowSquares squares) {
  const Expr bytes = kSumBytes * sums_per_row(spec.kind) * squares.groups * squares.rows;
  Collective sums{RankGroup::tensor, CollectiveKind::all_reduce, CollectiveKind::all_reduce, bytes};
  sums.squares = std::move(squares);
  return sums;
}

/// The number of groups of a norm whose row is divided into parts; none for other norms.
std::optional<Integer> divided_groups(const HeadNorm& norm) {
  const bool grouped = norm.scope == QueryKeyNormScope::each_head_own_weight;
  const bool divided = mentions_divided(norm.heads.row_width);
  return grouped && divided ? norm.heads.heads.constant() : std::nullopt;
}

std::optional<Collective> sums_of(const HeadNorm& norm, std::int64_t ranks) {
  const HeadRows& rows = norm.heads;
  RowSquares squares{1, rows.rows, rows.first, rows.heads * rows.head_dim, rows.row_width};
  if (norm.scope == QueryKeyNormScope::all_heads) {
    const bool divided = mentions_divided(rows.heads) || mentions_divided(rows.head_dim);
    return divided ? std::optional(sums_of(norm.spec, std::move(squares))) : std::nullopt;
  }
  const std::optional<Integer> groups = divided_groups(norm);
  if (!groups || *groups % ranks == 0) return std::nullopt;
  squares.groups = *groups;
  squares.width = rows.row_width;
  return sums_of(norm.spec, std::move(squares));
}

}  // namespace

std::optional<Collective> norm_sums(const Op& op, std::int64_t ranks) {
  if (const auto* const heads = std::get_if<HeadNorm>(&op)) return sums_of(*heads, ranks);
  const auto* const norm = std::get_if<Norm>(&op);
  if (norm == nullptr || !mentions_divided(norm->width)) return std::nullopt;
  const Expr& row_width = norm->row_width.is_zero() ? norm->width : norm->row_width;
  return sums_of(norm->spec, {1, norm->rows, {}, norm->width, row_width});
}

Op with_groups_of_rank(Op op, std::int64_t ranks) {
  auto* const norm = std::get_if<HeadNorm>(&op);
  if (norm == nullptr) return op;
  const std::optional<Integer> groups = divided_groups(*norm);
  if (!groups) return op;
  if (*groups % ranks != 0) {
    norm->heads.heads = Integer{1};
    norm->heads.head_dim = norm->heads.row_width;
    return op;
  }
  norm->heads.heads = *groups / ranks;
  Expr& features = norm->heads.head_dim;
  if (mentions_divided(features)) features = Integer{ranks} * features;
  return op;
}

}  // namespace headroom::detail
