// Tile: one ggml block of each of kLanes rows of a matrix. Every lane of a vector is a row, so a
// block decodes as in scalar code, and no sum crosses lanes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "simd.h"

namespace headroom::measured::blocks {

using simd::Floats;
using simd::Ints;
using simd::kLanes;
using simd::Words;

/// Run of a block's bytes that kernels read `unit` bytes at a time. In a tile, the units of all
/// rows are interleaved: unit u of row r is at offset·kLanes + u·unit·kLanes + r·unit.
struct BlockField {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t unit = 1;
};

/// Bytes of a block with these fields.
constexpr std::size_t block_bytes(std::span<const BlockField> fields) {
  std::size_t bytes = 0;
  for (const BlockField& field : fields) bytes += field.bytes;
  return bytes;
}

/// Float16 of kLanes rows as float32. GCC 12 warns about the form without a mask.
inline Floats widen_halves(simd::Halves halves) {
#if defined(__AVX512F__)
  return std::bit_cast<Floats>(_mm512_maskz_cvtph_ps(0xffff, std::bit_cast<__m256i>(halves)));
#elif defined(__AVX__) && defined(__F16C__)
  return std::bit_cast<Floats>(_mm256_cvtph_ps(std::bit_cast<__m128i>(halves)));
#elif defined(__ARM_NEON)
  return std::bit_cast<Floats>(vcvt_f32_f16(std::bit_cast<float16x4_t>(halves)));
#else
  const Words bits = __builtin_convertvector(halves, Words);
  // The exponent's bias is 15 instead of 127; multiplying also normalises subnormal numbers.
  const Floats magnitude = std::bit_cast<Floats>((bits & 0x7fffU) << 13U) * 0x1p112F;
  return std::bit_cast<Floats>(std::bit_cast<Words>(magnitude) | (bits & 0x8000U) << 16U);
#endif
}

inline Floats widen_halves(const std::byte* from) {
  simd::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return widen_halves(halves);
}

/// Unsigned bytes of kLanes rows. GCC 12 moves the lanes of a vector conversion one by one.
inline Words widen_bytes(const std::byte* from) {
#if defined(__AVX512F__)
  return std::bit_cast<Words>(
      _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  return std::bit_cast<Words>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#elif defined(__ARM_NEON)
  std::uint32_t four;
  std::memcpy(&four, from, sizeof four);
  const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four));
  return std::bit_cast<Words>(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
#else
  using Bytes [[gnu::vector_size(kLanes)]] = std::uint8_t;
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return __builtin_convertvector(bytes, Words);
#endif
}

inline Floats to_floats(Words values) {
  return __builtin_convertvector(std::bit_cast<Ints>(values), Floats);
}

/// Reads a tile by the offsets of its blocks.
class BlockTile {
 public:
  explicit BlockTile(const std::byte* data) : data_(data) {}

  /// Float16 at `offset` of every row.
  [[nodiscard]] Floats half(std::size_t offset) const { return widen_halves(at(offset)); }
  /// Four bytes of every row, the first one in the lowest bits.
  [[nodiscard]] Words quad(std::size_t offset) const {
    Words value;
    std::memcpy(&value, at(offset), sizeof value);
    return value;
  }
  [[nodiscard]] Words pair(std::size_t offset) const {
    simd::Halves value;
    std::memcpy(&value, at(offset), sizeof value);
    return __builtin_convertvector(value, Words);
  }
  [[nodiscard]] Words byte(std::size_t offset) const { return widen_bytes(at(offset)); }
  [[nodiscard]] Ints signed_byte(std::size_t offset) const {
    return std::bit_cast<Ints>(byte(offset) << 24U) >> 24;
  }
  [[nodiscard]] Words low(std::size_t offset) const { return byte(offset) & 15U; }
  [[nodiscard]] Words high(std::size_t offset) const { return byte(offset) >> 4U; }

 private:
  [[nodiscard]] const std::byte* at(std::size_t offset) const {
    return data_ + offset * static_cast<std::size_t>(kLanes);
  }

  const std::byte* data_;
};

}  // namespace headroom::measured::blocks
