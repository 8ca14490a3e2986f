// Dot products of four unsigned with four signed bytes in every lane.
#pragma once

#include "block_tile.h"

namespace headroom::measured::blocks {

#if !defined(__AVX512VNNI__) && !defined(__AVX512BW__) && \
    (!defined(__AVX2__) || defined(__AVX512F__))
/// Byte `i` of every lane with its sign.
inline Ints signed_bytes(Words value, std::uint32_t i) {
  return std::bit_cast<Ints>(value << (24U - 8U * i)) >> 24;
}
#endif

/// sums + Σ codes·x over the four bytes of every lane: codes unsigned, x signed. Exact: bytes are
/// widened to 16 bits where the machine lacks dpbusd, as maddubs saturates for codes above 127.
[[gnu::always_inline]] inline Ints add_dot(Ints sums, Words codes, Words x) {
#if defined(__AVX512VNNI__)
  return std::bit_cast<Ints>(_mm512_dpbusd_epi32(
      std::bit_cast<__m512i>(sums), std::bit_cast<__m512i>(codes), std::bit_cast<__m512i>(x)));
#elif defined(__AVX512BW__)
  const auto even = std::bit_cast<__m512i>(codes & 0x00ff00ffU);
  const auto odd = std::bit_cast<__m512i>(codes >> 8U & 0x00ff00ffU);
  const auto x_odd = _mm512_srai_epi16(std::bit_cast<__m512i>(x), 8);
  const auto x_even = _mm512_srai_epi16(std::bit_cast<__m512i>(x << 8U), 8);
  return sums + std::bit_cast<Ints>(_mm512_madd_epi16(even, x_even)) +
         std::bit_cast<Ints>(_mm512_madd_epi16(odd, x_odd));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  const auto even = std::bit_cast<__m256i>(codes & 0x00ff00ffU);
  const auto odd = std::bit_cast<__m256i>(codes >> 8U & 0x00ff00ffU);
  const auto x_odd = _mm256_srai_epi16(std::bit_cast<__m256i>(x), 8);
  const auto x_even = _mm256_srai_epi16(std::bit_cast<__m256i>(x << 8U), 8);
  return sums + std::bit_cast<Ints>(_mm256_madd_epi16(even, x_even)) +
         std::bit_cast<Ints>(_mm256_madd_epi16(odd, x_odd));
#else
  for (std::uint32_t i = 0; i < 4; ++i) {
    sums += std::bit_cast<Ints>(codes >> (8U * i) & 0xffU) * signed_bytes(x, i);
  }
  return sums;
#endif
}

}  // namespace headroom::measured::blocks
