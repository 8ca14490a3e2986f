// Dot products of four unsigned with four signed bytes in every lane.
#pragma once

#include "block_tile.h"

namespace headroom::measured::blocks {

#if !defined(__AVX512VNNI__) && !defined(__AVX512BW__) && \
    (!defined(__AVX2__) || defined(__AVX512F__)) && !defined(__ARM_NEON)
/// Byte `i` of every lane with its sign.
inline Ints signed_bytes(Words value, std::uint32_t i) {
  return std::bit_cast<Ints>(value << (24U - 8U * i)) >> 24;
}
#endif

#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_DOTPROD)
/// Sums of neighbouring products.
inline int32x4_t pairwise_products(int16x8_t a, int16x8_t b) {
  return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
}
#endif

/// sums + Σ codes·x over the four bytes of every lane: codes unsigned, x signed. Exact: bytes are
/// widened to 16 bits where the machine lacks dpbusd, as maddubs saturates for codes above 127.
/// Arm's sdot takes signed codes: 128 less each, so that 128·Σ x is added back.
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
#elif defined(__ARM_FEATURE_MATMUL_INT8)
  return std::bit_cast<Ints>(vusdotq_s32(std::bit_cast<int32x4_t>(sums),
                                         std::bit_cast<uint8x16_t>(codes),
                                         std::bit_cast<int8x16_t>(x)));
#elif defined(__ARM_FEATURE_DOTPROD)
  const auto bytes = std::bit_cast<int8x16_t>(x);
  const auto centred = std::bit_cast<int8x16_t>(codes ^ 0x80808080U);
  const int32x4_t offset = vdotq_s32(vdupq_n_s32(0), vdupq_n_s8(-128), bytes);
  return std::bit_cast<Ints>(
      vsubq_s32(vdotq_s32(std::bit_cast<int32x4_t>(sums), centred, bytes), offset));
#elif defined(__ARM_NEON)
  const auto unsigned_bytes = std::bit_cast<uint8x16_t>(codes);
  const auto bytes = std::bit_cast<int8x16_t>(x);
  const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(unsigned_bytes)));
  const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(unsigned_bytes));
  const int16x8_t x_low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t x_high = vmovl_high_s8(bytes);
  const int32x4_t first = pairwise_products(low, x_low);
  const int32x4_t second = pairwise_products(high, x_high);
  return sums + std::bit_cast<Ints>(vpaddq_s32(first, second));
#else
  for (std::uint32_t i = 0; i < 4; ++i) {
    sums += std::bit_cast<Ints>(codes >> (8U * i) & 0xffU) * signed_bytes(x, i);
  }
  return sums;
#endif
}

#if defined(__AVX512BW__) && !defined(__AVX512VNNI__)
/// Sums of four products of neighbouring bytes, for unsigned a and signed b whose pairs of products
/// fit into 16 bits.
inline Ints products_of_four(__m512i a, __m512i b) {
  return std::bit_cast<Ints>(_mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
}
#elif defined(__AVX2__) && !defined(__AVX512F__)
/// Sums of four products of neighbouring bytes, for unsigned a and signed b whose pairs of products
/// fit into 16 bits.
inline Ints products_of_four(__m256i a, __m256i b) {
  return std::bit_cast<Ints>(_mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}
#endif

/// sums + Σ codes·x for codes of at most 127 and |x| ≤ 127. Two products are at most 32,258, so
/// that maddubs is exact.
[[gnu::always_inline]] inline Ints add_low_dot(Ints sums, Words codes, Words x) {
#if defined(__AVX512BW__) && !defined(__AVX512VNNI__)
  return sums + products_of_four(std::bit_cast<__m512i>(codes), std::bit_cast<__m512i>(x));
#elif defined(__AVX2__) && !defined(__AVX512F__)
  return sums + products_of_four(std::bit_cast<__m256i>(codes), std::bit_cast<__m256i>(x));
#elif defined(__ARM_FEATURE_DOTPROD)
  return std::bit_cast<Ints>(vdotq_s32(std::bit_cast<int32x4_t>(sums),
                                       std::bit_cast<int8x16_t>(codes),
                                       std::bit_cast<int8x16_t>(x)));
#else
  return add_dot(sums, codes, x);
#endif
}

/// add_centred_dot subtracts so much from every code: 128 where the machine multiplies signed bytes
/// as fast.
#if (defined(__AVX2__) && !defined(__AVX512F__)) || defined(__ARM_FEATURE_DOTPROD)
inline constexpr float kCentre = 128;
#else
inline constexpr float kCentre = 0;
#endif

/// sums + Σ (codes − kCentre)·x for |x| ≤ 127. With 128 subtracted, two products are at most
/// 32,512: maddubs is exact for |code|·(x with the code's sign).
[[gnu::always_inline]] inline Ints add_centred_dot(Ints sums, Words codes, Words x) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  const auto centred = std::bit_cast<__m256i>(codes ^ 0x80808080U);
  return sums + products_of_four(_mm256_abs_epi8(centred),
                                 _mm256_sign_epi8(std::bit_cast<__m256i>(x), centred));
#elif defined(__ARM_FEATURE_DOTPROD)
  return add_low_dot(sums, codes ^ 0x80808080U, x);
#else
  return add_dot(sums, codes, x);
#endif
}

}  // namespace headroom::measured::blocks
