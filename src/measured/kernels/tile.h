// Register-blocked matrix product for attention, for a few rows r and a few vectors of columns:
//   out[r, :] += Σ over steps of a[r, step] · b[step, :]
#pragma once

#include <array>
#include <cstdint>

#include "simd.h"

namespace headroom::measured {

/// a[r, step] is at r · row_stride + step · step_stride.
struct TileLeft {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t step_stride = 0;
};

/// b, row-major.
struct TileRight {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

struct TileOut {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// Computes `rows` × `vectors` sums in registers. `start(r, v)` gives their initial values; `end(r,
/// v, sum)` stores them.
template <std::size_t rows, std::size_t vectors, class Start, class End>
inline void tile_product(TileLeft a, TileRight b, std::int64_t steps, const Start& start,
                         const End& end) {
  using simd::Floats;
  using simd::kLanes;
  std::array<std::array<Floats, vectors>, rows> sums;
  simd::unroll<rows>(
      [&](auto r) { simd::unroll<vectors>([&](auto v) { sums[r][v] = start(r, v); }); });
  for (std::int64_t step = 0; step < steps; ++step) {
    std::array<Floats, vectors> right;
    const float* row = b.data + step * b.stride;
    simd::unroll<vectors>(
        [&](auto v) { right[v] = simd::load(row + static_cast<std::int64_t>(v) * kLanes); });
    const float* left = a.data + step * a.step_stride;
    simd::unroll<rows>([&](auto r) {
      const Floats factor = simd::broadcast(left[static_cast<std::int64_t>(r) * a.row_stride]);
      simd::unroll<vectors>([&](auto v) { sums[r][v] += factor * right[v]; });
    });
  }
  simd::unroll<rows>(
      [&](auto r) { simd::unroll<vectors>([&](auto v) { end(r, v, sums[r][v]); }); });
}

}  // namespace headroom::measured
