// Products of a tile of codes with rows of float32 activations.
#include <algorithm>
#include <type_traits>

#include "group_codes.h"
#include "grouped_matrix.h"

namespace headroom::measured::groups {
namespace {

using checkpoint::CodeKind;

enum class Zeros { none, stored };

/// Independent sums per row and tile: a single sum waits for its additions otherwise.
template <std::size_t tiles, std::size_t rows>
inline constexpr std::size_t kChains = tiles == 1 && rows == 1 ? 4 : 1;

/// Sums of one tile, [rows, chains].
template <std::size_t rows, std::size_t chains>
using TileSums = std::array<std::array<Floats, chains>, rows>;

/// Sums of the columns of a group.
template <std::size_t tiles, std::size_t rows>
using GroupSums = std::array<TileSums<rows, kChains<tiles, rows>>, tiles>;

/// Adds the products of a column of codes with x. `first` is the chain of the step's first column.
template <Zeros zeros, std::size_t rows, std::size_t chains, std::size_t first>
struct ColumnAdder {
  Floats zero;
  const float* x;  ///< of the step's first column
  std::int64_t x_stride;
  TileSums<rows, chains>& sums;

  template <std::size_t j>
  [[gnu::always_inline]] void operator()(std::integral_constant<std::size_t, j> /*column*/,
                                         Floats value) const {
    if constexpr (zeros == Zeros::stored) value -= zero;
    constexpr std::size_t kChain = (first + j) % chains;
    const float* const from = x + j;
    simd::unroll<rows>(
        [&](auto r) { sums[r][kChain] += value * from[static_cast<std::int64_t>(r) * x_stride]; });
  }
};

/// A column of codes of several tiles that are equally far apart, and their zero points.
template <std::size_t tiles>
struct TileColumn {
  const std::byte* codes = nullptr;
  std::int64_t next_codes = 0;  ///< bytes from a tile to the next
  std::array<Floats, tiles> zeros = {};
};

/// Adds the products of one step of columns with x; `number` is that of the step in an unrolled
/// loop.
template <Zeros zeros, std::size_t number, class Codes, std::size_t tiles, std::size_t rows>
[[gnu::always_inline]] inline void add_step(const Codes& codes, const TileColumn<tiles>& column,
                                            const float* x, std::int64_t x_stride,
                                            GroupSums<tiles, rows>& sums) {
  constexpr std::size_t kOwn = kChains<tiles, rows>;
  simd::unroll<tiles>([&](auto t) {
    codes.visit(column.codes + static_cast<std::int64_t>(t) * column.next_codes,
                ColumnAdder<zeros, rows, kOwn, number>{column.zeros[t], x, x_stride, sums[t]});
  });
}

/// Adds the products of columns [0, count) with x.
template <Zeros zeros, class Codes, std::size_t tiles, std::size_t rows>
[[gnu::always_inline]] inline void add_columns(const Codes& codes, TileColumn<tiles> from,
                                               const float* x, std::int64_t x_stride,
                                               std::int64_t count, GroupSums<tiles, rows>& sums) {
  // Codes of one column per step are unrolled, so that the chains take turns.
  constexpr std::size_t kUnrolled = Codes::kStep == 1 ? 4 : 1;
  constexpr auto kColumns = static_cast<std::int64_t>(kUnrolled * Codes::kStep);
  std::int64_t column = 0;
  for (; column + kColumns <= count; column += kColumns) {
    simd::unroll<kUnrolled>([&](auto u) {
      constexpr std::size_t kOwn = decltype(u)::value;
      add_step<zeros, kOwn, Codes, tiles, rows>(codes, from, x + column + kOwn * Codes::kStep,
                                                x_stride, sums);
      from.codes += Codes::kStepBytes;
    });
  }
  for (; column < count; ++column, from.codes += Codes::kStepBytes) {
    add_step<zeros, 0, Codes, tiles, rows>(codes, from, x + column, x_stride, sums);
  }
}

template <std::size_t chains>
Floats total(const std::array<Floats, chains>& sums) {
  if constexpr (chains == 1)
    return sums[0];
  else
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class Codes, Zeros zeros, std::size_t tiles, std::size_t rows>
void multiply_tiles(const GroupTile& at) {
  const Codes codes(*at.levels);
  std::array<std::array<Floats, rows>, tiles> sums = {};
  TileColumn<tiles> from{at.codes, at.next.code_bytes};
  const float* x = at.x;
  const float* scale = at.scales;
  const float* zero = at.zeros;
  for (std::int64_t begin = 0; begin < at.columns; begin += at.group) {
    const std::int64_t count = std::min(at.group, at.columns - begin);
    if constexpr (zeros == Zeros::stored) {
      simd::unroll<tiles>([&](auto t) { from.zeros[t] = simd::load(zero + at.next.floats_of(t)); });
    }
    GroupSums<tiles, rows> own = {};
    add_columns<zeros, Codes, tiles, rows>(codes, from, x, at.x_stride, count, own);
    simd::unroll<tiles>([&](auto t) {
      const Floats scales = simd::load(scale + at.next.floats_of(t)) * Codes::kFactor;
      simd::unroll<rows>([&](auto r) { sums[t][r] += scales * total(own[t][r]); });
    });
    from.codes += count / static_cast<std::int64_t>(Codes::kStep) *
                  static_cast<std::int64_t>(Codes::kStepBytes);
    x += count;
    scale += kLanes;
    zero += kLanes;
  }
  store_sums(at, sums);
}

template <class Codes, Zeros zeros>
constexpr blocks::TileProducts<GroupTile> products() {
  return {{multiply_tiles<Codes, zeros, 1, 8>, multiply_tiles<Codes, zeros, 1, 4>,
           multiply_tiles<Codes, zeros, 1, 1>},
          multiply_tiles<Codes, zeros, static_cast<std::size_t>(blocks::kTilesAtOnce), 1>};
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

/// With AVX-512, a level is looked up by one instruction.
bool computes_levels(const std::array<float, 16>& levels) {
#if defined(__AVX512F__)
  constexpr bool kLooksUp = true;
#else
  constexpr bool kLooksUp = false;
#endif
  return !kLooksUp && IntegerNibbleCodes::have(levels);
}

}  // namespace

const GroupKernels& kernels_of(CodeKind kind, const std::array<float, 16>& levels) {
  static constexpr GroupKernels kNibbles = integer_kernels<NibbleCodes>();
  static constexpr GroupKernels kIntegerNibbles = integer_kernels<IntegerNibbleCodes>();
  static constexpr GroupKernels kInt8 = integer_kernels<Int8Codes>();
  static constexpr GroupKernels kFloat8 = float_kernels<Float8Codes>();
  static constexpr GroupKernels kFloat16 = float_kernels<Float16Codes>();
  static constexpr GroupKernels kBfloat16 = float_kernels<Bfloat16Codes>();
  switch (kind) {
    case CodeKind::nibble:
      return computes_levels(levels) ? kIntegerNibbles : kNibbles;
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
