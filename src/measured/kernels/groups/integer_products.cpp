#include "integer_products.h"

#include <algorithm>
#include <cmath>

#include "../blocks/block_formats.h"
#include "../blocks/byte_dot.h"
#include "group_codes.h"

namespace headroom::measured::groups {
namespace {

using blocks::ByteTable;
using blocks::Int8Block;
using blocks::kInt8Block;
using checkpoint::CodeKind;
using checkpoint::GroupedWeights;

/// Bytes of one word of every row of a tile.
constexpr std::size_t kWordBytes = 4 * kLaneCount;

Words word_at(const std::byte* tile) {
  Words word;
  std::memcpy(&word, tile, sizeof word);
  return word;
}

/// Nibbles, in halves of words, whose bytes are at most 127.
struct NibbleBytes {
  static constexpr std::size_t kColumnsPerWord = 8;

  explicit NibbleBytes(const ByteTable& own) : table(own) {}

  /// Codes of columns 4i to 4i + 3.
  [[nodiscard]] Words at(const std::byte* tile, std::size_t i) const {
    const Words word = word_at(tile + i / 2 * kWordBytes);
    return blocks::look_up(table, word >> (i % 2 == 0 ? 0U : 4U) & blocks::kLowNibbles);
  }

  static Ints add_dot(Ints sums, Words codes, Words x) {
    return blocks::add_low_dot(sums, codes, x);
  }

  ByteTable table;
};

/// Signed bytes, plus 128.
struct SignedBytes {
  static constexpr std::size_t kColumnsPerWord = 4;

  explicit SignedBytes(const ByteTable& /*own*/) {}

  [[nodiscard]] Words at(const std::byte* tile, std::size_t i) const {
    return word_at(tile + i * kWordBytes) ^ 0x80808080U;
  }

  static Ints add_dot(Ints sums, Words codes, Words x) {
    return blocks::add_centred_dot(sums, codes, x);
  }
};

/// Sums of one group: Σ code·x of every row of W, of signed bytes less blocks::kCentre, and Σ x.
template <std::size_t rows>
struct IntegerSums {
  std::array<Floats, rows> products = {};
  std::array<float, rows> inputs = {};
};

template <std::size_t tiles, std::size_t rows>
using GroupSums = std::array<IntegerSums<rows>, tiles>;

/// Adds `run` columns of a group, from column `first` of x, which share a half or a whole block.
template <class Codes, std::size_t run, std::size_t tiles, std::size_t rows>
[[gnu::always_inline]] inline void add_run(const Codes& codes, const std::byte* from,
                                           const IntegerTile& at, std::int64_t first,
                                           GroupSums<tiles, rows>& sums) {
  const Int8Block* const part = at.x + first / kInt8Block;
  const auto within = static_cast<std::size_t>(first % kInt8Block);
  std::array<std::array<Ints, rows>, tiles> dots = {};
  simd::unroll<run / 4>([&](auto i) {
    simd::unroll<tiles>([&](auto t) {
      const Words bytes = codes.at(from + static_cast<std::int64_t>(t) * at.next.code_bytes, i);
      simd::unroll<rows>([&](auto r) {
        const Int8Block& own = part[static_cast<std::int64_t>(r) * at.x_stride];
        std::uint32_t four;
        std::memcpy(&four, own.values.data() + within + 4 * i, sizeof four);
        dots[t][r] = Codes::add_dot(dots[t][r], bytes, Words{} + four);
      });
    });
  });
  simd::unroll<tiles>([&](auto t) {
    simd::unroll<rows>([&](auto r) {
      const Int8Block& own = part[static_cast<std::int64_t>(r) * at.x_stride];
      sums[t].products[r] += __builtin_convertvector(dots[t][r], Floats) * own.scale;
      sums[t].inputs[r] += run == kInt8Block ? own.sum : own.half_sums[within / run];
    });
  });
}

template <class Codes, std::size_t run, std::size_t tiles, std::size_t rows>
void multiply_integers(const IntegerTile& at) {
  constexpr auto kRun = static_cast<std::int64_t>(run);
  constexpr std::size_t kRunBytes = run / Codes::kColumnsPerWord * kWordBytes;
  const Codes codes(*at.table);
  std::array<std::array<Floats, rows>, tiles> sums = {};
  const std::byte* from = at.codes;
  const float* scale = at.scales;
  const float* zero = at.zeros;
  for (std::int64_t begin = 0; begin < at.columns; begin += at.group) {
    const std::int64_t end = std::min(at.columns, begin + at.group);
    GroupSums<tiles, rows> own;
    for (std::int64_t column = begin; column < end; column += kRun, from += kRunBytes) {
      add_run<Codes, run, tiles, rows>(codes, from, at, column, own);
    }
    simd::unroll<tiles>([&](auto t) {
      const Floats scales = simd::load(scale + at.next.floats_of(t)) * at.factor;
      const Floats zeros = simd::load(zero + at.next.floats_of(t));
      simd::unroll<rows>(
          [&](auto r) { sums[t][r] += scales * (own[t].products[r] - zeros * own[t].inputs[r]); });
    });
    scale += kLanes;
    zero += kLanes;
  }
  store_sums(at, sums);
}

template <class Codes, std::size_t run>
constexpr IntegerProducts integer_products() {
  return {{multiply_integers<Codes, run, 1, 8>, multiply_integers<Codes, run, 1, 4>,
           multiply_integers<Codes, run, 1, 1>},
          multiply_integers<Codes, run, static_cast<std::size_t>(blocks::kTilesAtOnce), 1>};
}

constexpr std::int64_t kHalfBlock = kInt8Block / 2;

template <class Codes>
IntegerProducts products_of(std::int64_t group) {
  if (group % kInt8Block == 0) return integer_products<Codes, kInt8Block>();
  return integer_products<Codes, kHalfBlock>();
}

/// Levels as bytes, in steps of `factor` from the least one; empty if they are no such multiples.
std::optional<IntegerCodes> nibble_codes(const std::array<float, 16>& levels, float factor) {
  const float least = *std::ranges::min_element(levels);
  IntegerCodes codes{.zero = -least / factor, .factor = factor};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const float steps = (levels[i] - least) / factor;
    if (steps != std::trunc(steps) || steps > 127) return std::nullopt;
    codes.table[i] = static_cast<std::uint8_t>(steps);
  }
  return codes;
}

bool fills_half_blocks(const GroupedWeights& weights) {
  if (weights.columns % kInt8Block != 0) return false;
  return weights.groups() == 1 || weights.group % kHalfBlock == 0;
}

}  // namespace

std::optional<IntegerCodes> integer_codes(const GroupedWeights& weights) {
  if (!fills_half_blocks(weights)) return std::nullopt;
  const std::int64_t group = weights.groups() == 1 ? weights.columns : weights.group;
  switch (weights.kind) {
    case CodeKind::nibble: {
      std::optional<IntegerCodes> codes = nibble_codes(weights.levels, 1);
      if (!codes) codes = nibble_codes(weights.levels, 0.5F);
      if (codes) codes->products = products_of<NibbleBytes>(group);
      return codes;
    }
    case CodeKind::int8:
      return IntegerCodes{.products = products_of<SignedBytes>(group),
                          .zero = 128 - blocks::kCentre};
    case CodeKind::float8:
    case CodeKind::float16:
    case CodeKind::bfloat16:
      break;
  }
  return std::nullopt;
}

std::uint32_t with_nibbles_in_halves(std::uint32_t word) noexcept {
  std::uint32_t halves = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    halves |= (word >> (4 * i) & 15U) << (i < 4 ? 8 * i : 8 * (i - 4) + 4);
  }
  return halves;
}

std::uint32_t with_nibbles_in_turns(std::uint32_t word) noexcept {
  std::uint32_t turns = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    turns |= (word >> (i < 4 ? 8 * i : 8 * (i - 4) + 4) & 15U) << (4 * i);
  }
  return turns;
}

}  // namespace headroom::measured::groups
