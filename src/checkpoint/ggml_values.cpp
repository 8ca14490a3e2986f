#include "ggml_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "element_type.h"
#include "float_values.h"
#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

/// The bytes of one block, and the output for its values.
struct Block {
  const std::byte* data;
  float* out;

  template <class Value>
  [[nodiscard]] Value at(std::size_t offset) const {
    Value value;
    std::memcpy(&value, data + offset, sizeof(value));
    return value;
  }
  [[nodiscard]] float half(std::size_t offset) const {
    return half_to_float(at<std::uint16_t>(offset));
  }
  [[nodiscard]] unsigned byte(std::size_t offset) const {
    return std::to_integer<unsigned>(data[offset]);
  }
  [[nodiscard]] int signed_byte(std::size_t offset) const { return at<std::int8_t>(offset); }
  [[nodiscard]] unsigned low(std::size_t offset) const { return byte(offset) & 15U; }
  [[nodiscard]] unsigned high(std::size_t offset) const { return byte(offset) >> 4U; }
};

float number(unsigned value) { return static_cast<float>(value); }
float number(int value) { return static_cast<float>(value); }

void read_f32(const Block& block) { *block.out = block.at<float>(0); }
void read_f64(const Block& block) { *block.out = static_cast<float>(block.at<double>(0)); }
void read_f16(const Block& block) { *block.out = block.half(0); }
void read_bf16(const Block& block) { *block.out = bfloat16_to_float(block.at<std::uint16_t>(0)); }

// Blocks of 32: the low nibbles of 16 bytes are the first 16 values, the high nibbles the others.
constexpr std::size_t kHalf = 16;

void read_q4_0(const Block& block) {
  const float scale = block.half(0);
  for (std::size_t i = 0; i < kHalf; ++i) {
    block.out[i] = scale * number(static_cast<int>(block.low(2 + i)) - 8);
    block.out[kHalf + i] = scale * number(static_cast<int>(block.high(2 + i)) - 8);
  }
}

void read_q4_1(const Block& block) {
  const float scale = block.half(0);
  const float least = block.half(2);
  for (std::size_t i = 0; i < kHalf; ++i) {
    block.out[i] = scale * number(block.low(4 + i)) + least;
    block.out[kHalf + i] = scale * number(block.high(4 + i)) + least;
  }
}

/// The fifth bit of value `i`, from a separate word.
unsigned fifth_bit(std::uint32_t bits, std::size_t i) { return (bits >> i & 1U) << 4U; }

void read_q5_0(const Block& block) {
  const float scale = block.half(0);
  const auto bits = block.at<std::uint32_t>(2);
  for (std::size_t i = 0; i < kHalf; ++i) {
    const unsigned first = block.low(6 + i) | fifth_bit(bits, i);
    const unsigned second = block.high(6 + i) | fifth_bit(bits, kHalf + i);
    block.out[i] = scale * number(static_cast<int>(first) - 16);
    block.out[kHalf + i] = scale * number(static_cast<int>(second) - 16);
  }
}

void read_q5_1(const Block& block) {
  const float scale = block.half(0);
  const float least = block.half(2);
  const auto bits = block.at<std::uint32_t>(4);
  for (std::size_t i = 0; i < kHalf; ++i) {
    block.out[i] = scale * number(block.low(8 + i) | fifth_bit(bits, i)) + least;
    block.out[kHalf + i] = scale * number(block.high(8 + i) | fifth_bit(bits, kHalf + i)) + least;
  }
}

/// Signed bytes starting at `begin`, times the scale.
void read_bytes(const Block& block, float scale, std::size_t begin, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    block.out[i] = scale * number(block.signed_byte(begin + i));
  }
}

void read_q8_0(const Block& block) { read_bytes(block, block.half(0), 2, 32); }
void read_q8_1(const Block& block) { read_bytes(block, block.half(0), 4, 32); }
void read_q8_k(const Block& block) { read_bytes(block, block.at<float>(0), 4, 256); }

/// Blocks of 256 values of two bits: in each half, 32 bytes store four runs of 32 values, one per
/// bit pair.
unsigned pair_of_bits(const Block& block, std::size_t begin, std::size_t i) {
  const std::size_t half = i / 128;
  const std::size_t run = i % 128 / 32;
  return block.byte(begin + 32 * half + i % 32) >> (2 * run) & 3U;
}

void read_q2_k(const Block& block) {
  const float scale = block.half(80);
  const float least = block.half(82);
  for (std::size_t i = 0; i < 256; ++i) {
    const float own_scale = scale * number(block.low(i / 16));
    const float own_least = least * number(block.high(i / 16));
    block.out[i] = own_scale * number(pair_of_bits(block, 16, i)) - own_least;
  }
}

/// Scale `i` of 16: four bits in the first 8 bytes, two more in the last 4.
int q3_k_scale(const Block& block, std::size_t i) {
  constexpr std::size_t kScales = 96;
  const unsigned four = i < 8 ? block.low(kScales + i) : block.high(kScales + i - 8);
  const unsigned two = block.byte(kScales + 8 + i % 4) >> (2 * (i / 4)) & 3U;
  return static_cast<int>(four | two << 4U) - 32;
}

void read_q3_k(const Block& block) {
  const float scale = block.half(108);
  for (std::size_t i = 0; i < 256; ++i) {
    const bool third_bit = (block.byte(i % 32) >> (i / 32) & 1U) != 0;
    const int value = static_cast<int>(pair_of_bits(block, 32, i)) - (third_bit ? 0 : 4);
    block.out[i] = scale * number(q3_k_scale(block, i / 16)) * number(value);
  }
}

struct ScaleAndLeast {
  float scale;
  float least;
};

/// Scale and minimum `i` of 8, six bits each in 12 bytes after two half floats.
ScaleAndLeast k_scale(const Block& block, std::size_t i) {
  constexpr std::size_t kScales = 4;
  const auto byte = [&](std::size_t at) { return block.byte(kScales + at); };
  unsigned scale = byte(i) & 63U;
  unsigned least = byte(i + 4) & 63U;
  if (i >= 4) {
    scale = (byte(i + 4) & 15U) | (byte(i - 4) >> 6U) << 4U;
    least = byte(i + 4) >> 4U | (byte(i) >> 6U) << 4U;
  }
  return {block.half(0) * number(scale), block.half(2) * number(least)};
}

/// Four bits of value `i`: 32 bytes store the run of their low nibbles, then that of the high ones.
unsigned k_nibble(const Block& block, std::size_t begin, std::size_t i) {
  const std::size_t offset = begin + i / 64 * 32 + i % 32;
  return i % 64 < 32 ? block.low(offset) : block.high(offset);
}

void read_q4_k(const Block& block) {
  for (std::size_t i = 0; i < 256; ++i) {
    const auto [scale, least] = k_scale(block, i / 32);
    block.out[i] = scale * number(k_nibble(block, 16, i)) - least;
  }
}

void read_q5_k(const Block& block) {
  for (std::size_t i = 0; i < 256; ++i) {
    const auto [scale, least] = k_scale(block, i / 32);
    const unsigned fifth = block.byte(16 + i % 32) >> (i / 32) & 1U;
    block.out[i] = scale * number(k_nibble(block, 48, i) | fifth << 4U) - least;
  }
}

void read_q6_k(const Block& block) {
  const float scale = block.half(208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128;
    const std::size_t run = i % 128 / 32;
    const std::size_t four_at = 64 * half + 32 * (run % 2) + i % 32;
    const unsigned four = run < 2 ? block.low(four_at) : block.high(four_at);
    const unsigned two = block.byte(128 + 32 * half + i % 32) >> (2 * run) & 3U;
    const int value = static_cast<int>(four | two << 4U) - 32;
    block.out[i] = scale * number(block.signed_byte(192 + i / 16)) * number(value);
  }
}

// The values of the 16 codes.
constexpr std::array<int, 16> kNonLinear{-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
// Values of the OCP microscaling float of four bits (E2M1), doubled.
constexpr std::array<int, 16> kFloat4{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void read_iq4_nl(const Block& block) {
  const float scale = block.half(0);
  for (std::size_t i = 0; i < kHalf; ++i) {
    block.out[i] = scale * number(kNonLinear.at(block.low(2 + i)));
    block.out[kHalf + i] = scale * number(kNonLinear.at(block.high(2 + i)));
  }
}

void read_iq4_xs(const Block& block) {
  const auto high_bits = block.at<std::uint16_t>(2);
  for (std::size_t group = 0; group < 8; ++group) {
    const unsigned four = group % 2 == 0 ? block.low(4 + group / 2) : block.high(4 + group / 2);
    const unsigned two = static_cast<unsigned>(high_bits) >> (2 * group) & 3U;
    const float scale = block.half(0) * number(static_cast<int>(four | two << 4U) - 32);
    float* const out = block.out + 32 * group;
    for (std::size_t i = 0; i < kHalf; ++i) {
      out[i] = scale * number(kNonLinear.at(block.low(8 + kHalf * group + i)));
      out[kHalf + i] = scale * number(kNonLinear.at(block.high(8 + kHalf * group + i)));
    }
  }
}

void read_mxfp4(const Block& block) {
  // The exponent's bias is 127; the table is doubled.
  const float scale = std::ldexp(1.0F, static_cast<int>(block.byte(0)) - 128);
  for (std::size_t i = 0; i < kHalf; ++i) {
    block.out[i] = scale * number(kFloat4.at(block.low(1 + i)));
    block.out[kHalf + i] = scale * number(kFloat4.at(block.high(1 + i)));
  }
}

void read_tq2_0(const Block& block) {
  const float scale = block.half(64);
  for (std::size_t i = 0; i < 256; ++i) {
    block.out[i] = scale * number(static_cast<int>(pair_of_bits(block, 0, i)) - 1);
  }
}

using Reader = void (*)(const Block& block);

/// The reader of a type; null if it is not supported.
Reader reader_of(GgmlType type) noexcept {
  switch (type) {
    case GgmlType::f32:
      return read_f32;
    case GgmlType::f64:
      return read_f64;
    case GgmlType::f16:
      return read_f16;
    case GgmlType::bf16:
      return read_bf16;
    case GgmlType::q4_0:
      return read_q4_0;
    case GgmlType::q4_1:
      return read_q4_1;
    case GgmlType::q5_0:
      return read_q5_0;
    case GgmlType::q5_1:
      return read_q5_1;
    case GgmlType::q8_0:
      return read_q8_0;
    case GgmlType::q8_1:
      return read_q8_1;
    case GgmlType::q2_k:
      return read_q2_k;
    case GgmlType::q3_k:
      return read_q3_k;
    case GgmlType::q4_k:
      return read_q4_k;
    case GgmlType::q5_k:
      return read_q5_k;
    case GgmlType::q6_k:
      return read_q6_k;
    case GgmlType::q8_k:
      return read_q8_k;
    case GgmlType::iq4_nl:
      return read_iq4_nl;
    case GgmlType::iq4_xs:
      return read_iq4_xs;
    case GgmlType::mxfp4:
      return read_mxfp4;
    case GgmlType::tq2_0:
      return read_tq2_0;
    case GgmlType::iq2_xxs:
    case GgmlType::iq2_xs:
    case GgmlType::iq3_xxs:
    case GgmlType::iq1_s:
    case GgmlType::iq3_s:
    case GgmlType::iq2_s:
    case GgmlType::iq1_m:
    case GgmlType::i8:
    case GgmlType::i16:
    case GgmlType::i32:
    case GgmlType::i64:
    case GgmlType::tq1_0:
    case GgmlType::nvfp4:
    case GgmlType::q1_0:
    case GgmlType::q2_0:
      break;
  }
  return nullptr;
}

}  // namespace

bool can_dequantise(GgmlType type) noexcept { return reader_of(type) != nullptr; }

void dequantise(GgmlType type, std::span<const std::byte> data, std::span<float> out,
                const std::string& where) {
  const GgmlTypeInfo& layout = info(type);
  const Reader read = reader_of(type);
  if (read == nullptr) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("weights of type {} are not supported", layout.name), where,
                "use a file with F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q8_K, IQ4_NL, IQ4_XS, MXFP4 "
                "or TQ2_0");
  }
  const auto block_size = static_cast<std::size_t>(layout.block_size);
  const auto block_bytes = static_cast<std::size_t>(layout.block_bytes);
  const std::size_t blocks = data.size() / block_bytes;
  if (blocks * block_bytes != data.size() || blocks * block_size != out.size()) {
    throw Error(ErrorCode::internal, "a tensor's bytes and values do not match", where);
  }
  for (std::size_t i = 0; i < blocks; ++i) {
    read({data.data() + i * block_bytes, out.data() + i * block_size});
  }
  require_finite(out, where);
}

void require_values(GgmlType type, std::span<const std::byte> data, const std::string& where) {
  constexpr std::size_t kBlocks = 256;  // at a time, so that their values stay in the cache
  const auto block_bytes = static_cast<std::size_t>(info(type).block_bytes);
  std::vector<float> values;
  for (; !data.empty(); data = data.subspan(std::min(data.size(), kBlocks * block_bytes))) {
    const auto some = data.first(std::min(data.size(), kBlocks * block_bytes));
    values.resize(some.size() / block_bytes * static_cast<std::size_t>(info(type).block_size));
    dequantise(type, some, values, where);
  }
}

}  // namespace headroom::checkpoint
