// Rows of weights that are laid out slice by slice, so that their source and their layout never
// take their memory both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gemm.h"
#include "headroom/expr.h"
#include "pages.h"
#include "parallel.h"

namespace headroom::measured {

/// Bytes of the rows of a slice: whole huge pages, and enough for all threads.
inline constexpr std::size_t kSourceSlice = 2 * kHugePage;

/// Memory that is read once, from its start to its end.
class SourceReading {
 public:
  SourceReading(std::span<const std::byte> memory, SourceMemory use) : memory_(memory), use_(use) {}

  /// Returns what lies before byte `end` to the system, in huge pages.
  void read_until(std::size_t end) noexcept {
    if (use_ == SourceMemory::kept) return;
    const auto first = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::uintptr_t boundary = (first + end) / kHugePage * kHugePage;
    if (boundary <= first + released_) return;
    discard_pages(memory_.subspan(released_, boundary - first - released_));
    released_ = boundary - first;
  }

 private:
  std::span<const std::byte> memory_;
  SourceMemory use_;
  std::size_t released_ = 0;
};

/// Calls lay_out(rows) for all `rows` rows of `memory`, some at a time: multiples of `granule` rows
/// but for the last ones.
template <class LayOut>
void for_source_rows(std::span<const std::byte> memory, SourceMemory use, std::int64_t rows,
                     std::int64_t granule, const LayOut& lay_out) {
  if (rows == 0) return;
  const std::size_t row_bytes = memory.size() / static_cast<std::size_t>(rows);
  const auto in_slice =
      static_cast<std::int64_t>(kSourceSlice / std::max<std::size_t>(1, row_bytes));
  const std::int64_t some = std::max(granule, in_slice / granule * granule);
  SourceReading reading(memory, use);
  for (std::int64_t row = 0; row < rows; row += some) {
    const Range range{row, std::min(rows, row + some)};
    lay_out(range);
    reading.read_until(static_cast<std::size_t>(range.end) * row_bytes);
  }
}

}  // namespace headroom::measured
