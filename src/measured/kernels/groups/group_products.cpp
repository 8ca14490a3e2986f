// Products of a tile of codes with rows of float32 activations.
#include <algorithm>
#include <type_traits>

#include "group_codes.h"
#include "grouped_matrix.h"

namespace headroom::measured::groups {
namespace {

using checkpoint::CodeKind;

enum class Zeros { none, stored };

/// Independent sums per row: one row alone waits for its additions otherwise.
template <std::size_t rows>
inline constexpr std::size_t kChains = rows == 1 ? 4 : 1;

template <std::size_t rows>
using GroupSums = std::array<std::array<Floats, kChains<rows>>, rows>;

/// Adds the products of a column of codes with x. `first` is the chain of the step's first column.
template <Zeros zeros, std::size_t rows, std::size_t first>
struct ColumnAdder {
  Floats zero;
  const float* x;  ///< of the step's first column
  std::int64_t x_stride;
  GroupSums<rows>& sums;

  template <std::size_t j>
  [[gnu::always_inline]] void operator()(std::integral_constant<std::size_t, j> /*column*/,
                                         Floats value) const {
    if constexpr (zeros == Zeros::stored) value -= zero;
    constexpr std::size_t kChain = (first + j) % kChains<rows>;
    const float* const from = x + j;
    simd::unroll<rows>(
        [&](auto r) { sums[r][kChain] += value * from[static_cast<std::int64_t>(r) * x_stride]; });
  }
};

/// Adds the products of columns [0, count) of `tile` with x.
template <class Codes, Zeros zeros, std::size_t rows>
[[gnu::always_inline]] inline void add_columns(const Codes& codes, const std::byte* tile,
                                               Floats zero, const float* x, std::int64_t x_stride,
                                               std::int64_t count, GroupSums<rows>& sums) {
  // Codes of one column per step are unrolled, so that the chains take turns.
  constexpr std::size_t kUnrolled = Codes::kStep == 1 ? 4 : 1;
  constexpr auto kColumns = static_cast<std::int64_t>(kUnrolled * Codes::kStep);
  std::int64_t column = 0;
  for (; column + kColumns <= count; column += kColumns) {
    simd::unroll<kUnrolled>([&](auto u) {
      constexpr std::size_t kOwn = decltype(u)::value;
      const float* const from = x + column + kOwn * Codes::kStep;
      codes.visit(tile + kOwn * Codes::kStepBytes,
                  ColumnAdder<zeros, rows, kOwn>{zero, from, x_stride, sums});
    });
    tile += kUnrolled * Codes::kStepBytes;
  }
  for (; column < count; ++column, tile += Codes::kStepBytes) {
    codes.visit(tile, ColumnAdder<zeros, rows, 0>{zero, x + column, x_stride, sums});
  }
}

template <std::size_t chains>
Floats total(const std::array<Floats, chains>& sums) {
  if constexpr (chains == 1)
    return sums[0];
  else
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class Codes, Zeros zeros, std::size_t rows>
void multiply_tile(const GroupTile& at) {
  const Codes codes(*at.levels);
  std::array<Floats, rows> sums = {};
  const std::byte* tile = at.codes;
  const float* x = at.x;
  const float* scale = at.scales;
  const float* zero = at.zeros;
  for (std::int64_t begin = 0; begin < at.columns; begin += at.group) {
    const std::int64_t count = std::min(at.group, at.columns - begin);
    Floats zero_point = {};
    if constexpr (zeros == Zeros::stored) zero_point = simd::load(zero);
    GroupSums<rows> own = {};
    add_columns<Codes, zeros, rows>(codes, tile, zero_point, x, at.x_stride, count, own);
    const Floats scales = simd::load(scale) * Codes::kFactor;
    simd::unroll<rows>([&](auto r) { sums[r] += scales * total(own[r]); });
    tile += count / static_cast<std::int64_t>(Codes::kStep) *
            static_cast<std::int64_t>(Codes::kStepBytes);
    x += count;
    scale += kLanes;
    zero += kLanes;
  }
  simd::unroll<rows>([&](auto r) {
    simd::store_first(at.y + static_cast<std::int64_t>(r) * at.y_stride, sums[r], at.lanes);
  });
}

template <class Codes, Zeros zeros>
constexpr GroupProducts products() {
  return {multiply_tile<Codes, zeros, 8>, multiply_tile<Codes, zeros, 4>,
          multiply_tile<Codes, zeros, 1>};
}

/// Floats have no zero points.
template <class Codes>
constexpr GroupKernels float_kernels() {
  return {products<Codes, Zeros::none>(), products<Codes, Zeros::none>()};
}

template <class Codes>
constexpr GroupKernels integer_kernels() {
  return {products<Codes, Zeros::none>(), products<Codes, Zeros::stored>()};
}

}  // namespace

const GroupKernels& kernels_of(CodeKind kind) {
  static constexpr GroupKernels kNibbles = integer_kernels<NibbleCodes>();
  static constexpr GroupKernels kInt8 = integer_kernels<Int8Codes>();
  static constexpr GroupKernels kFloat8 = float_kernels<Float8Codes>();
  static constexpr GroupKernels kFloat16 = float_kernels<Float16Codes>();
  static constexpr GroupKernels kBfloat16 = float_kernels<Bfloat16Codes>();
  switch (kind) {
    case CodeKind::nibble:
      return kNibbles;
    case CodeKind::int8:
      return kInt8;
    case CodeKind::float8:
      return kFloat8;
    case CodeKind::float16:
      return kFloat16;
    case CodeKind::bfloat16:
      break;
  }
  return kBfloat16;
}

}  // namespace headroom::measured::groups
