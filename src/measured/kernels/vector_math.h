// exp, log, tanh and erf over vectors of float32, accurate to a few units in the last place.
//
// Polynomials without a source are minimax fits made for this file; the tests "vector math" check
// all errors.
#pragma once

#include "simd.h"

namespace headroom::measured::simd {

namespace internal {

/// c[0] + c[1]·x + … by Horner's rule.
template <std::size_t count>
inline Floats polynomial(Floats x, const float (&c)[count]) {
  Floats value = broadcast(c[count - 1]);
  unroll<count - 1>([&](auto i) { value = value * x + c[count - 2 - i]; });
  return value;
}

/// (e^r - 1 - r) / r² on ±ln(2)/2
inline Floats exp_remainder(Floats r) {
  return polynomial(r, {0.5F, 0.16666576666F, 0.041666554213F, 0.0083632328837F, 0.0013926250831F});
}

}  // namespace internal

/// e^x: zero below -87.3 (where float32 becomes subnormal), about 2.4e38 above 88.3.
inline Floats exp(Floats x) {
  constexpr float kLeast = -87.33654F;
  constexpr float kMost = 88.37F;
  constexpr float kLog2E = 1.44269504F;
  // Cody and Waite's two-part ln 2: the first part has few bits, so that n times it is exact.
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  // Adding this leaves the nearest integer in the low bits of the float.
  constexpr float kRounder = 12582912.0F;  // 1.5 · 2^23
  const Floats inside = min(broadcast(kMost), max(broadcast(kLeast), x));
  const Floats rounded = inside * kLog2E + kRounder;
  const Floats n = rounded - kRounder;
  const Floats r = (inside - n * kLn2High) - n * kLn2Low;
  const Floats p = internal::exp_remainder(r);
  const Floats mantissa = (p * r) * r + (r + 1.0F);
  const Floats power = std::bit_cast<Floats>((std::bit_cast<Words>(rounded) << 23) + 0x3f800000U);
  return x < kLeast ? Floats{} : mantissa * power;
}

/// e^x - 1, without the cancellation near zero.
inline Floats expm1(Floats x) {
  constexpr float kHalfLn2 = 0.34657359F;
  const Floats small = internal::exp_remainder(x) * x * x + x;
  const Floats magnitude = max(x, -x);
  return magnitude < kHalfLn2 ? small : exp(x) - 1.0F;
}

/// ln x of a positive normal number, as Cephes computes logf (netlib.org/cephes): the exponent, and
/// a polynomial of the mantissa on √½ to √2.
inline Floats log(Floats x) {
  constexpr std::uint32_t kRootHalf = 0x3f3504f3;  // √½
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  // Counted from √½, so that the mantissa is in that range.
  const Words bits = std::bit_cast<Words>(x) - kRootHalf;
  const Floats exponent = __builtin_convertvector(std::bit_cast<Ints>(bits) >> 23, Floats);
  const Floats f = std::bit_cast<Floats>((bits & 0x7fffffU) + kRootHalf) - 1.0F;
  const Floats p = internal::polynomial(f, {3.3333331174e-1F, -2.4999993993e-1F, 2.0000714765e-1F,
                                            -1.6668057665e-1F, 1.4249322787e-1F, -1.2420140846e-1F,
                                            1.1676998740e-1F, -1.1514610310e-1F, 7.0376836292e-2F});
  const Floats square = f * f;
  const Floats tail = p * f * square + exponent * kLn2Low - square * 0.5F;
  return (f + tail) + exponent * kLn2High;
}

/// ln(1 + x) for x >= 0; the quotient makes up for the rounding of 1 + x (Goldberg 1991, theorem
/// 4).
inline Floats log1p(Floats x) {
  const Floats sum = x + 1.0F;
  return sum == 1.0F ? x : log(sum) * (x / (sum - 1.0F));
}

/// ln(1 + e^x), which is x itself above torch.nn.functional.softplus's threshold.
inline Floats softplus(Floats x) {
  constexpr float kThreshold = 20.0F;
  return x > kThreshold ? x : log1p(exp(x));
}

/// x·P(x²)/Q(x²), fitted for relative error on ±9.01, beyond which tanh is 1 in float32.
inline Floats tanh(Floats x) {
  const Floats inside = min(broadcast(9.01F), max(broadcast(-9.01F), x));
  const Floats u = inside * inside;
  const Floats p = internal::polynomial(
      u, {0.9999999794F, 0.1338037615F, 0.003494816022F, 2.059634173e-5F, 1.333691932e-8F});
  const Floats q = internal::polynomial(
      u, {1.0F, 0.4671369161F, 0.02587404673F, 0.0003284370724F, 7.76931682e-7F});
  return inside * p / q;
}

/// x·P(x²)/Q(x²), fitted for relative error on ±3.925, beyond which erf is 1 in float32.
inline Floats erf(Floats x) {
  const Floats inside = min(broadcast(3.925F), max(broadcast(-3.925F), x));
  const Floats u = inside * inside;
  const Floats p = internal::polynomial(u, {1.128379146F, 0.1905907073F, 0.05276883193F,
                                            0.003772399145F, 0.0002848369477F, 2.04601201e-6F});
  const Floats q = internal::polynomial(
      u, {1.0F, 0.5022393484F, 0.1141814036F, 0.01498290187F, 0.001163814935F, 3.804726333e-5F});
  return inside * p / q;
}

/// x·Φ(x), Φ the normal distribution (arXiv 1606.08415).
inline Floats gelu(Floats x) {
  const Floats half = x * 0.5F;
  return half * erf(x * 0.70710678F) + half;
}

/// x·(1 + tanh u)/2 with u = √(2/π)·(x + 0.044715·x³), computed as x/(1 + e^-2u), which stays
/// accurate for negative x (arXiv 1606.08415).
inline Floats gelu_tanh(Floats x) {
  constexpr float kMinusTwoRootTwoOverPi = -1.5957691F;
  const Floats exponent = x * (x * x * 0.044715F + 1.0F) * kMinusTwoRootTwoOverPi;
  return x / (exp(exponent) + 1.0F);
}

/// x / (1 + e^-x)
inline Floats silu(Floats x) { return x / (exp(-x) + 1.0F); }

/// 1 / (1 + e^-x)
inline Floats sigmoid(Floats x) { return 1.0F / (exp(-x) + 1.0F); }

inline Floats relu(Floats x) { return max(Floats{}, x); }

/// elu(x) + 1 (arXiv 2006.16236, eq. 7): x + 1 above zero, e^x below.
inline Floats elu_plus_one(Floats x) { return x > 0.0F ? x + 1.0F : exp(x); }

}  // namespace headroom::measured::simd
