#include "tile_multiply.h"

#include <algorithm>

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

constexpr std::size_t kVectors = 4;  // of a register block

/// Rows of a register block, such that the sums cover the latency of multiply–adds.
constexpr std::size_t rows_at_once(std::size_t vectors) { return vectors <= 2 ? 8 : 4; }
static_assert(kTileColumns == static_cast<std::int64_t>(kVectors) * kLanes);

/// Steps of b whose last columns are copied at once.
constexpr std::int64_t kPackedSteps = 128;

/// Position of register block element (r, v) in an output, and its number of valid lanes.
struct OutTile {
  TileOut out;
  std::int64_t columns;

  [[nodiscard]] float* at(std::size_t r, std::size_t v) const {
    return out.data + static_cast<std::int64_t>(r) * out.stride +
           static_cast<std::int64_t>(v) * kLanes;
  }
  [[nodiscard]] std::int64_t lanes(std::size_t v) const {
    return std::clamp<std::int64_t>(columns - static_cast<std::int64_t>(v) * kLanes, 0, kLanes);
  }
  [[nodiscard]] Floats load(std::size_t r, std::size_t v) const {
    if (lanes(v) == kLanes) return simd::load(at(r, v));
    return lanes(v) == 0 ? Floats{} : simd::load_first(at(r, v), lanes(v));
  }
  void store(std::size_t r, std::size_t v, Floats value) const {
    if (lanes(v) == kLanes) {
      simd::store(at(r, v), value);
    } else if (lanes(v) > 0) {
      simd::store_first(at(r, v), value, lanes(v));
    }
  }
};

template <std::size_t rows, std::size_t vectors>
void multiply_rows(TileLeft a, TileRight b, OutTile to, std::int64_t steps, Output output) {
  // Prefetch the block's output: stores that miss would be serialised.
  simd::unroll<rows>([&](auto r) { simd::prefetch_to_write(to.at(r, 0), to.columns); });
  tile_product<rows, vectors>(
      a, b, steps,
      [&](std::size_t r, std::size_t v) {
        return output == Output::overwrite ? Floats{} : to.load(r, v);
      },
      [&](std::size_t r, std::size_t v, Floats value) { to.store(r, v, value); });
}

/// Prefetches rows of a matrix with contiguous steps; hardware prefetchers do not detect rows that
/// are far apart. Inlined like the prefetches (see simd.h).
template <std::size_t rows>
[[gnu::always_inline]] inline void prefetch_rows(const float* first, std::int64_t stride,
                                                 std::int64_t steps) {
  simd::unroll<rows>([&](auto r) {
    simd::prefetch_to_read(first + static_cast<std::int64_t>(r) * stride, steps);
  });
}

/// All rows of one tile of columns.
template <std::size_t vectors>
void multiply_columns(TileLeft a, TileRight b, TileOut out, const TileExtent& extent,
                      Output output) {
  constexpr std::size_t kRows = rows_at_once(vectors);
  constexpr auto kStep = static_cast<std::int64_t>(kRows);
  std::int64_t row = 0;
  for (; row + kStep <= extent.rows; row += kStep) {
    const bool has_next = a.step_stride == 1 && row + 2 * kStep <= extent.rows;
    if (has_next) prefetch_rows<kRows>(a.data + kStep * a.row_stride, a.row_stride, extent.steps);
    multiply_rows<kRows, vectors>(a, b, {out, extent.columns}, extent.steps, output);
    a.data += kStep * a.row_stride;
    out.data += kStep * out.stride;
  }
  for (; row < extent.rows; ++row) {
    multiply_rows<1, vectors>(a, b, {out, extent.columns}, extent.steps, output);
    a.data += a.row_stride;
    out.data += out.stride;
  }
}

/// All rows of one tile, with the fewest vectors that hold its columns.
template <std::size_t vectors>
void multiply_fewest(TileLeft a, TileRight b, TileOut out, const TileExtent& extent,
                     Output output) {
  if constexpr (vectors > 1) {
    constexpr auto kFewer = static_cast<std::int64_t>(vectors - 1);
    if (extent.columns <= kFewer * kLanes) {
      return multiply_fewest<vectors - 1>(a, b, out, extent, output);
    }
  }
  multiply_columns<vectors>(a, b, out, extent, output);
}

/// The columns after the last whole vector, from a copy that is readable in whole vectors.
void multiply_last_columns(TileLeft a, TileRight b, TileOut out, const TileExtent& extent,
                           Output output) {
  alignas(64) std::array<float, kPackedSteps * kLanes> packed;
  for (std::int64_t step = 0; step < extent.steps; step += kPackedSteps) {
    const std::int64_t steps = std::min(kPackedSteps, extent.steps - step);
    for (std::int64_t i = 0; i < steps; ++i) {
      simd::store(packed.data() + i * kLanes,
                  simd::load_first(b.data + (step + i) * b.stride, extent.columns));
    }
    multiply_columns<1>({a.data + step * a.step_stride, a.row_stride, a.step_stride},
                        {packed.data(), kLanes}, out, {extent.rows, extent.columns, steps},
                        step == 0 ? output : Output::accumulate);
  }
}

}  // namespace

void multiply(TileLeft a, TileRight b, TileOut out, const TileExtent& extent, Output output) {
  std::int64_t column = 0;
  const auto right = [&] { return TileRight{b.data + column, b.stride}; };
  const auto to = [&] { return TileOut{out.data + column, out.stride}; };
  for (; column + kTileColumns <= extent.columns; column += kTileColumns) {
    multiply_columns<kVectors>(a, right(), to(), {extent.rows, kTileColumns, extent.steps}, output);
  }
  for (; column + kLanes <= extent.columns; column += kLanes) {
    multiply_columns<1>(a, right(), to(), {extent.rows, kLanes, extent.steps}, output);
  }
  if (column == extent.columns) return;
  multiply_last_columns(a, right(), to(), {extent.rows, extent.columns - column, extent.steps},
                        output);
}

void multiply_padded(TileLeft a, TileRight b, TileOut out, const TileExtent& extent,
                     Output output) {
  multiply_fewest<kVectors>(a, b, out, extent, output);
}

float dot(const float* a, const float* b, std::int64_t count) {
  Floats sum = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum += simd::load(a + i) * simd::load(b + i);
  if (i < count) sum += simd::load_first(a + i, count - i) * simd::load_first(b + i, count - i);
  return simd::sum(sum);
}

void add_scaled(float factor, const float* x, std::int64_t count, float* to) {
  const Floats factors = simd::broadcast(factor);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    simd::store(to + i, simd::load(to + i) + factors * simd::load(x + i));
  }
  for (; i < count; ++i) to[i] += factor * x[i];
}

void multiply_row(float factor, std::int64_t count, float* row) {
  const Floats factors = simd::broadcast(factor);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) simd::store(row + i, simd::load(row + i) * factors);
  for (; i < count; ++i) row[i] *= factor;
}

}  // namespace headroom::measured
