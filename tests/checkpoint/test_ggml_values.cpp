// Values of ggml's tensor types, from blocks packed here value by value and from an independent
// decoder that walks each type's published bit order.
// Source: ggml/src/ggml-common.h and ggml-quants.c, github.com/ggml-org/llama.cpp.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ggml_values.h"
#include "headroom/error.h"

using namespace headroom;
using namespace headroom::checkpoint;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint16_t kHalfOne = 0x3C00;      // 1.0
constexpr std::uint16_t kHalfQuarter = 0x3400;  // 0.25

void put_half(Bytes& block, std::size_t at, std::uint16_t bits) {
  block[at] = static_cast<std::uint8_t>(bits & 0xFFU);
  block[at + 1] = static_cast<std::uint8_t>(bits >> 8U);
}

std::vector<float> values_of(GgmlType type, const Bytes& block) {
  std::vector<float> values(block.size() / static_cast<std::size_t>(info(type).block_bytes) *
                            static_cast<std::size_t>(info(type).block_size));
  dequantise(type, std::as_bytes(std::span(block)), values, "here");
  return values;
}

Bytes random_block(GgmlType type, unsigned seed) {
  std::mt19937 numbers(seed);
  Bytes block(static_cast<std::size_t>(info(type).block_bytes));
  for (auto& byte : block) byte = static_cast<std::uint8_t>(numbers());
  return block;
}

float f(int value) { return static_cast<float>(value); }

// The scales below are 1 and 0.25, which keeps every product exact.

std::vector<float> walk_q2_k(const Bytes& b) {
  std::vector<float> y;
  const std::uint8_t* q = &b[16];
  int is = 0;
  for (int n = 0; n < 256; n += 128, q += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (int part = 0; part < 2; ++part) {
        const int sc = b[static_cast<std::size_t>(is++)];
        for (int l = 0; l < 16; ++l) {
          y.push_back(f(sc & 15) * f((q[l + 16 * part] >> shift) & 3) - 0.25F * f(sc >> 4));
        }
      }
    }
  }
  return y;
}

std::vector<float> walk_q3_k(const Bytes& b) {
  // Unpacks twelve bytes to sixteen scales of six bits.
  std::array<int, 16> scales{};
  for (std::size_t i = 0; i < 4; ++i) {
    const int top = b[96 + 8 + i];
    scales[i] = (b[96 + i] & 15) | (top & 3) << 4;
    scales[4 + i] = (b[96 + 4 + i] & 15) | ((top >> 2) & 3) << 4;
    scales[8 + i] = (b[96 + i] >> 4) | ((top >> 4) & 3) << 4;
    scales[12 + i] = (b[96 + 4 + i] >> 4) | ((top >> 6) & 3) << 4;
  }
  std::vector<float> y;
  const std::uint8_t* q = &b[32];
  std::size_t is = 0;
  int mask = 1;
  for (int n = 0; n < 256; n += 128, q += 32) {
    for (int shift = 0; shift < 8; shift += 2, mask <<= 1) {
      for (int part = 0; part < 2; ++part) {
        const int scale = scales[is++] - 32;
        for (int l = 16 * part; l < 16 * part + 16; ++l) {
          const int minus = (b[static_cast<std::size_t>(l)] & mask) != 0 ? 0 : 4;
          y.push_back(f(scale) * f(((q[l] >> shift) & 3) - minus));
        }
      }
    }
  }
  return y;
}

struct SixBits {
  int scale;
  int least;
};

SixBits six_bits(const std::uint8_t* q, int j) {
  if (j < 4) return {q[j] & 63, q[j + 4] & 63};
  return {(q[j + 4] & 15) | (q[j - 4] >> 6) << 4, (q[j + 4] >> 4) | (q[j] >> 6) << 4};
}

std::vector<float> walk_q4_k(const Bytes& b) {
  std::vector<float> y;
  const std::uint8_t* q = &b[16];
  for (int is = 0; is < 8; is += 2, q += 32) {
    for (int part = 0; part < 2; ++part) {
      const SixBits own = six_bits(&b[4], is + part);
      for (int l = 0; l < 32; ++l) {
        const int nibble = part == 0 ? q[l] & 15 : q[l] >> 4;
        y.push_back(f(own.scale) * f(nibble) - 0.25F * f(own.least));
      }
    }
  }
  return y;
}

std::vector<float> walk_q5_k(const Bytes& b) {
  std::vector<float> y;
  const std::uint8_t* q = &b[48];
  int mask = 1;
  for (int is = 0; is < 8; is += 2, q += 32) {
    for (int part = 0; part < 2; ++part, mask <<= 1) {
      const SixBits own = six_bits(&b[4], is + part);
      for (int l = 0; l < 32; ++l) {
        const int nibble = part == 0 ? q[l] & 15 : q[l] >> 4;
        const int fifth = (b[static_cast<std::size_t>(16 + l)] & mask) != 0 ? 16 : 0;
        y.push_back(f(own.scale) * f(nibble + fifth) - 0.25F * f(own.least));
      }
    }
  }
  return y;
}

std::vector<float> walk_q6_k(const Bytes& b) {
  std::vector<float> y(256);
  for (std::size_t n = 0; n < 2; ++n) {
    const std::uint8_t* ql = &b[64 * n];
    const std::uint8_t* qh = &b[128 + 32 * n];
    for (std::size_t l = 0; l < 32; ++l) {
      const std::array<int, 4> codes{
          (ql[l] & 15) | (qh[l] & 3) << 4, (ql[l + 32] & 15) | ((qh[l] >> 2) & 3) << 4,
          (ql[l] >> 4) | ((qh[l] >> 4) & 3) << 4, (ql[l + 32] >> 4) | ((qh[l] >> 6) & 3) << 4};
      for (std::size_t run = 0; run < 4; ++run) {
        const auto scale = static_cast<std::int8_t>(b[192 + 8 * n + 2 * run + l / 16]);
        y[128 * n + 32 * run + l] = f(scale) * f(codes.at(run) - 32);
      }
    }
  }
  return y;
}

std::vector<float> walk_iq4_xs(const Bytes& b) {
  constexpr std::array<int, 16> kValues{-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};
  std::vector<float> y;
  const int high = b[2] | b[3] << 8;
  for (int ib = 0; ib < 8; ++ib) {
    const int low = b[static_cast<std::size_t>(4 + ib / 2)] >> 4 * (ib % 2) & 15;
    const float scale = f((low | (high >> 2 * ib & 3) << 4) - 32);
    for (int shift = 0; shift < 8; shift += 4) {
      for (int j = 0; j < 16; ++j) {
        const int code = b[static_cast<std::size_t>(8 + 16 * ib + j)] >> shift & 15;
        y.push_back(scale * f(kValues.at(static_cast<std::size_t>(code))));
      }
    }
  }
  return y;
}

// Two bits a value: of 32 bytes each, the lowest pairs first.
std::vector<float> walk_tq2_0(const Bytes& b) {
  std::vector<float> y;
  for (std::size_t half = 0; half < 64; half += 32) {
    for (int shift = 0; shift < 8; shift += 2) {
      for (std::size_t m = 0; m < 32; ++m) y.push_back(f(((b[half + m] >> shift) & 3) - 1));
    }
  }
  return y;
}

struct KType {
  GgmlType type;
  std::size_t scale_at;
  std::size_t least_at;  ///< 0: none
  std::vector<float> (*walk)(const Bytes&);
};

/// Codes 0 … 31, ordered so that value i has code (7·i + 3) mod levels.
int code_of(std::size_t i, int levels) { return static_cast<int>(7 * i + 3) % levels; }

/// Packs four bits of each code: the first half into the low nibbles of 16 bytes.
void put_nibbles(Bytes& block, std::size_t at, int levels) {
  for (std::size_t i = 0; i < 16; ++i) {
    block[at + i] =
        static_cast<std::uint8_t>((code_of(i, levels) & 15) | (code_of(16 + i, levels) & 15) << 4);
  }
}

void put_fifth_bits(Bytes& block, std::size_t at) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    if (code_of(i, 32) >= 16) bits |= 1U << i;
  }
  std::memcpy(&block[at], &bits, sizeof(bits));
}

void check_codes(GgmlType type, const Bytes& block, int levels, float offset) {
  const std::vector<float> values = values_of(type, block);
  REQUIRE(values.size() == 32);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(values[i] == 0.25F * f(code_of(i, levels)) + offset);
  }
}

}  // namespace

TEST_CASE("blocks of 32 unpack to the packed codes, scaled and shifted") {
  Bytes block(18);
  put_half(block, 0, kHalfQuarter);
  put_nibbles(block, 2, 16);
  check_codes(GgmlType::q4_0, block, 16, -8 * 0.25F);

  block.assign(20, 0);
  put_half(block, 0, kHalfQuarter);
  put_half(block, 2, kHalfOne);
  put_nibbles(block, 4, 16);
  check_codes(GgmlType::q4_1, block, 16, 1);

  block.assign(22, 0);
  put_half(block, 0, kHalfQuarter);
  put_fifth_bits(block, 2);
  put_nibbles(block, 6, 32);
  check_codes(GgmlType::q5_0, block, 32, -16 * 0.25F);

  block.assign(24, 0);
  put_half(block, 0, kHalfQuarter);
  put_half(block, 2, kHalfOne);
  put_fifth_bits(block, 4);
  put_nibbles(block, 8, 32);
  check_codes(GgmlType::q5_1, block, 32, 1);
}

TEST_CASE("Q8_0 and Q8_K are signed bytes times a scale") {
  Bytes block(34);
  put_half(block, 0, kHalfQuarter);
  for (std::size_t i = 0; i < 32; ++i) block[2 + i] = static_cast<std::uint8_t>(i * 8 + 128);
  const std::vector<float> values = values_of(GgmlType::q8_0, block);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(values[i] == 0.25F * f(static_cast<int>(i) * 8 - 128));
  }
  Bytes wide(4 + 256 + 32);
  const float scale = 0.5F;
  std::memcpy(wide.data(), &scale, sizeof(scale));
  wide[4 + 255] = 0x80;
  CHECK(values_of(GgmlType::q8_k, wide).back() == -64);
}

TEST_CASE("blocks of 256 decode as in their published description") {
  const std::array<KType, 7> types{{{GgmlType::q2_k, 80, 82, walk_q2_k},
                                    {GgmlType::q3_k, 108, 0, walk_q3_k},
                                    {GgmlType::q4_k, 0, 2, walk_q4_k},
                                    {GgmlType::q5_k, 0, 2, walk_q5_k},
                                    {GgmlType::q6_k, 208, 0, walk_q6_k},
                                    {GgmlType::iq4_xs, 0, 0, walk_iq4_xs},
                                    {GgmlType::tq2_0, 64, 0, walk_tq2_0}}};
  for (const KType& type : types) {
    CAPTURE(info(type.type).name);
    for (unsigned seed = 0; seed < 20; ++seed) {
      Bytes block = random_block(type.type, seed);
      put_half(block, type.scale_at, kHalfOne);
      if (type.least_at != 0) put_half(block, type.least_at, kHalfQuarter);
      CHECK(values_of(type.type, block) == type.walk(block));
    }
  }
}

TEST_CASE("four-bit floats have a power-of-two scale") {
  Bytes block(17);
  block[0] = 128;  // 2
  for (std::size_t i = 0; i < 16; ++i) block[1 + i] = static_cast<std::uint8_t>(i);
  const std::vector<float> values = values_of(GgmlType::mxfp4, block);
  const std::array<float, 16> expected{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (std::size_t i = 0; i < 16; ++i) CHECK(values[i] == expected.at(i));
}

TEST_CASE("the error names an unsupported type and its tensor") {
  const Bytes block(66);
  std::vector<float> values(256);
  try {
    dequantise(GgmlType::iq2_xxs, std::as_bytes(std::span(block)), values, "m.gguf: blk.0.x");
    FAIL("no error was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(error.where() == "m.gguf: blk.0.x");
    CHECK(error.message().find("IQ2_XXS") != std::string::npos);
  }
}

TEST_CASE("exactly the types of codebooks, integers and rare quantisations have no values") {
  std::set<std::string_view> without;
  for (const GgmlTypeInfo& type : ggml_types()) {
    if (!can_dequantise(type.type)) without.insert(type.name);
  }
  CHECK(without == std::set<std::string_view>{"I16", "I32", "I64", "I8", "IQ1_M", "IQ1_S", "IQ2_S",
                                              "IQ2_XS", "IQ2_XXS", "IQ3_S", "IQ3_XXS", "NVFP4",
                                              "Q1_0", "Q2_0", "TQ1_0"});
}

TEST_CASE("Q8_1 keeps the sum of its codes between scale and codes") {
  Bytes block(36);
  put_half(block, 0, kHalfQuarter);
  put_half(block, 2, kHalfOne);  // the sum takes no part in the values
  block[4] = 0x7F;
  block[35] = 0x80;
  const std::vector<float> values = values_of(GgmlType::q8_1, block);
  CHECK(values.front() == 0.25F * 127);
  CHECK(values.back() == 0.25F * -128);
}

TEST_CASE("float64 is rounded to float32") {
  const double stored = 1.0 + 0x1p-30;
  Bytes block(sizeof(stored));
  std::memcpy(block.data(), &stored, sizeof(stored));
  CHECK(values_of(GgmlType::f64, block) == std::vector<float>{1});
}

TEST_CASE("bytes and values of different counts are an error of the program") {
  for (const auto& [bytes, count] : {std::pair<std::size_t, std::size_t>{33, 32}, {34, 31}}) {
    const Bytes block(bytes);
    std::vector<float> values(count);
    try {
      dequantise(GgmlType::q8_0, std::as_bytes(std::span(block)), values, "here");
      FAIL("no error was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::internal);
    }
  }
}

TEST_CASE("a bad scale is found in any of many blocks") {
  constexpr std::size_t kBlocks = 300;  // require_values checks 256 at a time
  Bytes blocks(34 * kBlocks);
  CHECK_NOTHROW(require_values(GgmlType::q8_0, std::as_bytes(std::span(blocks)), "here"));
  put_half(blocks, 34 * (kBlocks - 1), 0x7E00);  // not a number
  CHECK_THROWS_AS(require_values(GgmlType::q8_0, std::as_bytes(std::span(blocks)), "here"), Error);
}

TEST_CASE("a scale that is not finite is refused") {
  Bytes block(34);
  put_half(block, 0, 0x7C00);  // infinity
  block[2] = 1;
  std::vector<float> values(32);
  CHECK_THROWS_AS(dequantise(GgmlType::q8_0, std::as_bytes(std::span(block)), values, "here"),
                  Error);
}
