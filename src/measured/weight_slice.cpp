#include "weight_slice.h"

namespace headroom::measured {
namespace {

/// Visits the blocks of all dimensions but the last two, which are in `block`.
void visit_outer(std::span<const WeightSlice> outer, std::int64_t inner_rows,
                 std::size_t inner_target, const WeightBlock& block,
                 const std::function<void(const WeightBlock& block)>& visit) {
  if (block.rows == 0 || block.columns == 0) return;
  if (outer.empty()) return visit(block);
  const WeightSlice& slice = outer.back();
  for (std::int64_t i = 0; i < slice.present(); ++i) {
    WeightBlock moved = block;
    moved.row += (slice.begin + i) * inner_rows;
    moved.target += static_cast<std::size_t>(i) * inner_target;
    visit_outer(outer.first(outer.size() - 1), inner_rows * slice.whole,
                inner_target * static_cast<std::size_t>(slice.count), moved, visit);
  }
}

}  // namespace

std::size_t elements_of(std::span<const WeightSlice> slices) {
  std::size_t elements = 1;
  for (const WeightSlice& slice : slices) elements *= static_cast<std::size_t>(slice.count);
  return elements;
}

void for_each_block(std::span<const WeightSlice> slices,
                    const std::function<void(const WeightBlock& block)>& visit) {
  constexpr WeightSlice kOneColumn{0, 1, 1};
  const bool is_vector = slices.size() == 1;
  const WeightSlice& columns = is_vector ? kOneColumn : slices.back();
  const std::span<const WeightSlice> others = is_vector ? slices : slices.first(slices.size() - 1);
  const WeightSlice& rows = others.back();
  const WeightBlock block{rows.begin,
                          rows.present(),
                          columns.begin,
                          columns.present(),
                          columns.whole,
                          0,
                          static_cast<std::size_t>(columns.count)};
  visit_outer(others.first(others.size() - 1), rows.whole,
              static_cast<std::size_t>(rows.count * columns.count), block, visit);
}

}  // namespace headroom::measured
