// Parts of a sweep's grid, for several processes.
#pragma once

#include <functional>

#include "headroom/report.h"

namespace headroom::cli {

/// Calls `sink` with grids whose rows, one grid after the other, are those of `grid` in its order.
/// Each has at most `most_rows` unless no axis divides it.
void for_each_piece(const SweepGrid& grid, Integer most_rows,
                    const std::function<void(const SweepGrid& piece)>& sink);

}  // namespace headroom::cli
