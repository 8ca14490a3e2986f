#include "random_blocks.h"

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "float16_bits.h"
#include "ggml_values.h"
#include "headroom/error.h"

namespace headroom::measured {
namespace {

using checkpoint::GgmlType;

/// Offset of a block's minimum, and the minimum in units of the scale that makes the mean 0.
struct Minimum {
  std::size_t offset = 0;
  float per_scale = 0;
};

/// The numbers of a block that are not random: its float16 scale and minimum.
struct ScalePlace {
  GgmlType type;
  std::size_t scale = 0;
  std::optional<Minimum> minimum{};
};

// Codes are uniform: half of the largest code is their mean. Minima of k-quants have random
// factors as their scales have. Codes without a minimum have a mean of half a step below 0, so the
// scales have random signs: a mean that all rows share would make all tokens alike layer by layer,
// and route them to the same experts.
constexpr std::array kScalePlaces{ScalePlace{GgmlType::q8_0, 0, {}},
                                  ScalePlace{GgmlType::q4_0, 0, {}},
                                  ScalePlace{GgmlType::q4_1, 0, Minimum{2, -7.5F}},
                                  ScalePlace{GgmlType::q5_0, 0, {}},
                                  ScalePlace{GgmlType::q5_1, 0, Minimum{2, -15.5F}},
                                  ScalePlace{GgmlType::q2_k, 80, Minimum{82, 1.5F}},
                                  ScalePlace{GgmlType::q3_k, 108, {}},
                                  ScalePlace{GgmlType::q4_k, 0, Minimum{2, 7.5F}},
                                  ScalePlace{GgmlType::q5_k, 0, Minimum{2, 15.5F}},
                                  ScalePlace{GgmlType::q6_k, 208, {}},
                                  ScalePlace{GgmlType::iq4_nl, 0, {}},
                                  ScalePlace{GgmlType::iq4_xs, 0, {}}};

void set_half(std::span<std::byte> block, std::size_t offset, float value) {
  const std::uint16_t bits = float16_bits(value);
  std::memcpy(block.data() + offset, &bits, sizeof bits);
}

/// The random bits that the scale replaces decide its sign.
void set_scale(const ScalePlace& place, std::span<std::byte> block, float magnitude) {
  const bool negative = (block[place.scale] & std::byte{1}) != std::byte{};
  const float scale = negative ? -magnitude : magnitude;
  set_half(block, place.scale, scale);
  if (place.minimum) set_half(block, place.minimum->offset, scale * place.minimum->per_scale);
}

/// The power of two of a block of MXFP4, whose exponent's bias is 127.
void set_exponent(std::span<std::byte> block, float scale) {
  block.front() = static_cast<std::byte>(127 + std::lround(std::log2(scale)));
}

void set_scale(GgmlType type, std::span<std::byte> block, float scale) {
  for (const ScalePlace& place : kScalePlaces) {
    if (place.type == type) return set_scale(place, block, scale);
  }
  if (type == GgmlType::mxfp4) return set_exponent(block, scale);
  throw Error(ErrorCode::internal, "no random blocks of this type");
}

/// Blocks of random bits with this scale.
StoredBlocks blocks_of_scale(GgmlType type, std::int64_t values, float scale, SplitMix64 numbers) {
  const checkpoint::GgmlTypeInfo& layout = checkpoint::info(type);
  const auto block_bytes = static_cast<std::size_t>(layout.block_bytes);
  StoredBlocks blocks{type, {}};
  blocks.bytes.resize(static_cast<std::size_t>(values / layout.block_size) * block_bytes);
  const std::span<std::byte> all(blocks.bytes);
  numbers.fill(all);
  for (std::size_t at = 0; at < all.size(); at += block_bytes) {
    set_scale(type, all.subspan(at, block_bytes), scale);
  }
  return blocks;
}

/// Standard deviation of the values of random blocks of scale 1.
float deviation_of_codes(GgmlType type, SplitMix64 numbers) {
  constexpr std::int64_t kValues = 8192;
  const StoredBlocks blocks = blocks_of_scale(type, kValues, 1, numbers);
  std::vector<float> values(kValues);
  checkpoint::dequantise(type, blocks.bytes, values, "random blocks");
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return static_cast<float>(std::sqrt(sum / kValues));
}

}  // namespace

StoredBlocks random_block_values(GgmlType type, std::int64_t values, float deviation,
                                 SplitMix64& numbers) {
  return blocks_of_scale(type, values, deviation / deviation_of_codes(type, numbers), numbers);
}

}  // namespace headroom::measured
