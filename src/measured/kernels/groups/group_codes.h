// Codes of quantised matrices as vectors over the rows of a tile; every lane of a vector is a row.
// A kind of codes has:
//   kStep                  columns that are read at once; groups are multiples of it
//   kStepBytes             bytes of these columns in a tile
//   kFactor                of all values, applied with the scales
//   visit(tile, add)       calls add(j, value) for each of these columns, value as float32
#pragma once

#include <array>
#include <cstring>

#include "../blocks/block_tile.h"

namespace headroom::measured::groups {

using blocks::to_floats;
using blocks::widen_bytes;
using blocks::widen_halves;
using simd::Floats;
using simd::Ints;
using simd::kLanes;
using simd::Words;

inline constexpr auto kLaneCount = static_cast<std::size_t>(kLanes);

/// 16 floats, looked up by the lowest four bits of every lane.
class LevelTable {
 public:
  explicit LevelTable(const std::array<float, 16>& levels) {
#if defined(__AVX512F__)
    std::memcpy(&levels_, levels.data(), sizeof levels_);
#elif defined(__AVX2__)
    std::memcpy(&low_, levels.data(), sizeof low_);
    std::memcpy(&high_, levels.data() + 8, sizeof high_);
#elif defined(__ARM_NEON)
    levels_ = vld1q_u8_x4(reinterpret_cast<const std::uint8_t*>(levels.data()));
#else
    levels_ = levels;
#endif
  }

  /// GCC 12 warns about the form without a mask.
  [[nodiscard]] Floats at(Words indices) const {
#if defined(__AVX512F__)
    return std::bit_cast<Floats>(_mm512_maskz_permutexvar_ps(
        0xffff, std::bit_cast<__m512i>(indices), std::bit_cast<__m512>(levels_)));
#elif defined(__AVX2__)
    const __m256i index = std::bit_cast<__m256i>(indices);
    const __m256 low = _mm256_permutevar8x32_ps(std::bit_cast<__m256>(low_), index);
    const __m256 high = _mm256_permutevar8x32_ps(std::bit_cast<__m256>(high_), index);
    // The fourth bit, moved to the sign, selects the half.
    const Words is_high = indices << 28U;
    return std::bit_cast<Floats>(_mm256_blendv_ps(low, high, std::bit_cast<__m256>(is_high)));
#elif defined(__ARM_NEON)
    // Bytes 4i to 4i + 3 of the table are its i-th float.
    const Words bytes = (indices & 15U) * 0x04040404U + 0x03020100U;
    return std::bit_cast<Floats>(vqtbl4q_u8(levels_, std::bit_cast<uint8x16_t>(bytes)));
#else
    Floats values = {};
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      values[lane] = levels_[indices[lane] & 15U];
    }
    return values;
#endif
  }

 private:
#if defined(__AVX512F__)
  Floats levels_;
#elif defined(__AVX2__)
  Floats low_;
  Floats high_;
#elif defined(__ARM_NEON)
  uint8x16x4_t levels_;
#else
  std::array<float, 16> levels_;
#endif
};

/// Eight nibbles per row and step, the first one in the lowest bits.
struct NibbleCodes {
  static constexpr std::size_t kStep = 8;
  static constexpr std::size_t kStepBytes = 4 * kLaneCount;
  static constexpr float kFactor = 1;

  explicit NibbleCodes(const std::array<float, 16>& levels) : table(levels) {}

  template <class Add>
  [[gnu::always_inline]] void visit(const std::byte* tile, const Add& add) const {
    Words word;
    std::memcpy(&word, tile, sizeof word);
    simd::unroll<kStep>(
        [&](auto j) { add(j, table.at(word >> static_cast<std::uint32_t>(4 * j))); });
  }

  LevelTable table;
};

/// Levels one apart are computed instead of looked up, which is faster but with AVX-512.
struct IntegerNibbleCodes {
  static constexpr std::size_t kStep = NibbleCodes::kStep;
  static constexpr std::size_t kStepBytes = NibbleCodes::kStepBytes;
  static constexpr float kFactor = 1;

  explicit IntegerNibbleCodes(const std::array<float, 16>& levels)
      : least(simd::broadcast(levels.front())) {}

  /// Returns whether the levels are one apart.
  [[nodiscard]] static bool have(const std::array<float, 16>& levels) {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (levels[i] != levels.front() + static_cast<float>(i)) return false;
    }
    return true;
  }

  template <class Add>
  [[gnu::always_inline]] void visit(const std::byte* tile, const Add& add) const {
    Words word;
    std::memcpy(&word, tile, sizeof word);
    simd::unroll<kStep>([&](auto j) {
      add(j, to_floats(word >> static_cast<std::uint32_t>(4 * j) & 15U) + least);
    });
  }

  Floats least;
};

struct Int8Codes {
  static constexpr std::size_t kStep = 1;
  static constexpr std::size_t kStepBytes = kLaneCount;
  static constexpr float kFactor = 1;

  explicit Int8Codes(const std::array<float, 16>& /*levels*/) {}

  template <class Add>
  [[gnu::always_inline]] void visit(const std::byte* tile, const Add& add) const {
    const Ints value = std::bit_cast<Ints>(widen_bytes(tile) << 24U) >> 24;
    add(std::integral_constant<std::size_t, 0>{}, __builtin_convertvector(value, Floats));
  }
};

/// Unsigned bytes of kLanes rows in 16 bits. GCC 12 moves the lanes of a vector conversion one by
/// one.
inline simd::Halves widen_to_halves(const std::byte* from) {
#if defined(__AVX512F__)
  return std::bit_cast<simd::Halves>(
      _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  return std::bit_cast<simd::Halves>(
      _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#elif defined(__ARM_NEON)
  std::uint32_t four;
  std::memcpy(&four, from, sizeof four);
  const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four));
  return std::bit_cast<simd::Halves>(vget_low_u16(vmovl_u8(bytes)));
#else
  using Bytes [[gnu::vector_size(kLanes)]] = std::uint8_t;
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, simd::Halves);
#endif
}

/// E4M3 divided by 2^8, as float32: its bits are those of a float16 whose exponent has a bias of 15
/// instead of 7, so that subnormal numbers widen, too.
inline Floats widen_float8(const std::byte* from) {
  using Shorts [[gnu::vector_size(sizeof(simd::Halves))]] = std::int16_t;
  const simd::Halves bits = widen_to_halves(from) << 8U;
  const auto with_sign_twice = std::bit_cast<simd::Halves>(std::bit_cast<Shorts>(bits) >> 1);
  return widen_halves(with_sign_twice & static_cast<std::uint16_t>(0xbfff));
}

/// The factor that widen_float8 leaves to the scales.
inline constexpr float kFloat8Factor = 256;

struct Float8Codes {
  static constexpr std::size_t kStep = 1;
  static constexpr std::size_t kStepBytes = kLaneCount;
  static constexpr float kFactor = kFloat8Factor;

  explicit Float8Codes(const std::array<float, 16>& /*levels*/) {}

  template <class Add>
  [[gnu::always_inline]] void visit(const std::byte* tile, const Add& add) const {
    add(std::integral_constant<std::size_t, 0>{}, widen_float8(tile));
  }
};

struct Float16Codes {
  static constexpr std::size_t kStep = 1;
  static constexpr std::size_t kStepBytes = 2 * kLaneCount;
  static constexpr float kFactor = 1;

  explicit Float16Codes(const std::array<float, 16>& /*levels*/) {}

  template <class Add>
  [[gnu::always_inline]] void visit(const std::byte* tile, const Add& add) const {
    add(std::integral_constant<std::size_t, 0>{}, widen_halves(tile));
  }
};

/// bfloat16 is the upper half of a float32.
inline Floats widen_bfloat16(const std::byte* from) {
  simd::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return std::bit_cast<Floats>(__builtin_convertvector(halves, Words) << 16U);
}

struct Bfloat16Codes {
  static constexpr std::size_t kStep = 1;
  static constexpr std::size_t kStepBytes = 2 * kLaneCount;
  static constexpr float kFactor = 1;

  explicit Bfloat16Codes(const std::array<float, 16>& /*levels*/) {}

  template <class Add>
  [[gnu::always_inline]] void visit(const std::byte* tile, const Add& add) const {
    add(std::integral_constant<std::size_t, 0>{}, widen_bfloat16(tile));
  }
};

}  // namespace headroom::measured::groups
