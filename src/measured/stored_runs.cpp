#include "stored_runs.h"

#include <algorithm>

#include "kernels/aligned.h"

namespace headroom::measured {

using headroom::detail::StackAxis;
using headroom::detail::Stacking;
using headroom::detail::StackRange;
using headroom::detail::WeightPlace;

std::vector<StoredRun> runs_of(const WeightPlace& place, StackAxis axis, std::int64_t begin,
                               std::int64_t count) {
  const bool stacked = place.layout.stacking != Stacking::alone && place.layout.axis == axis;
  if (!stacked) return {{begin, begin, count}};
  const StackRange& range = place.range;
  std::vector<StoredRun> runs;
  for (const std::int64_t end = begin + count; begin < end;) {
    const std::int64_t in_group = begin % range.size;
    const std::int64_t length = std::min(end - begin, range.size - in_group);
    runs.push_back({begin, begin / range.size * range.group_size + range.begin + in_group, length});
    begin += length;
  }
  return runs;
}

namespace {

/// Copies `row` × `column` of a tensor as wide as `stored_columns`; whole rows are one part.
void copy_row_runs(const StoredRun& row, const StoredRun& column, std::int64_t stored_columns,
                   std::size_t target_columns, const ReadElements& read, std::span<float> out) {
  const bool whole =
      column.count == stored_columns && static_cast<std::size_t>(stored_columns) == target_columns;
  if (whole) {
    return read(row.stored, 0, out.first(static_cast<std::size_t>(row.count * column.count)));
  }
  for (std::int64_t r = 0; r < row.count; ++r) {
    read(row.stored + r, column.stored,
         out.subspan(static_cast<std::size_t>(r) * target_columns,
                     static_cast<std::size_t>(column.count)));
  }
}

/// As above, of a tensor that stores the transposed matrix; `part` has room for a column of it.
void copy_column_runs(const StoredRun& row, const StoredRun& column, std::size_t target_columns,
                      const ReadElements& read, std::span<float> part, std::span<float> out) {
  const auto stored = part.first(static_cast<std::size_t>(row.count));
  for (std::int64_t c = 0; c < column.count; ++c) {
    read(column.stored + c, row.stored, stored);
    auto to = static_cast<std::size_t>(c);
    for (const float value : stored) {
      out[to] = value;
      to += target_columns;
    }
  }
}

}  // namespace

void copy_block(const WeightPlace& place, const WeightBlock& block, const ReadElements& read,
                std::span<float> out) {
  const auto rows = runs_of(place, StackAxis::out, block.row, block.rows);
  const auto columns = runs_of(place, StackAxis::in, block.column, block.columns);
  const bool transposed =
      place.layout.order == headroom::detail::StoredOrder::transposed && place.wanted.columns > 1;
  AlignedVector<float> part(transposed ? static_cast<std::size_t>(block.rows) : 0);
  for (const StoredRun& row : rows) {
    for (const StoredRun& column : columns) {
      const auto target = out.subspan(block.target_of(row.wanted - block.row) +
                                      static_cast<std::size_t>(column.wanted - block.column));
      if (transposed) {
        copy_column_runs(row, column, block.target_columns, read, part, target);
      } else {
        copy_row_runs(row, column, place.stored.columns, block.target_columns, read, target);
      }
    }
  }
}

}  // namespace headroom::measured
