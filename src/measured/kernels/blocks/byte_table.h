// Tables of 16 bytes, looked up by the four bytes of every lane.
#pragma once

#include <array>

#include "block_tile.h"

namespace headroom::measured::blocks {

using ByteTable = std::array<std::uint8_t, 16>;

/// The table's entries at the bytes of `indices`, which must be below 16. GCC 12 warns about the
/// broadcast without a mask.
inline Words look_up(const ByteTable& table, Words indices) {
#if defined(__AVX512BW__)
  __m128i entries;
  std::memcpy(&entries, table.data(), sizeof entries);
  return std::bit_cast<Words>(_mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(0xffff, entries),
                                                  std::bit_cast<__m512i>(indices)));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  __m128i entries;
  std::memcpy(&entries, table.data(), sizeof entries);
  return std::bit_cast<Words>(
      _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), std::bit_cast<__m256i>(indices)));
#elif defined(__ARM_NEON)
  return std::bit_cast<Words>(
      vqtbl1q_u8(vld1q_u8(table.data()), std::bit_cast<uint8x16_t>(indices)));
#else
  auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(Words)>>(indices);
  for (std::uint8_t& byte : bytes) byte = table[byte];
  return std::bit_cast<Words>(bytes);
#endif
}

}  // namespace headroom::measured::blocks
