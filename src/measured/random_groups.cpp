#include "random_groups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

namespace headroom::measured {
namespace {

using checkpoint::CodeKind;
using checkpoint::GroupedWeights;
using checkpoint::ScaleGrid;
using checkpoint::ScaleKind;
using headroom::detail::GroupCodes;
using headroom::detail::GroupFormat;
using headroom::detail::GroupScales;

CodeKind kind_of(GroupCodes codes) {
  switch (codes) {
    case GroupCodes::four_bits:
      return CodeKind::nibble;
    case GroupCodes::int8:
      return CodeKind::int8;
    case GroupCodes::float8:
      return CodeKind::float8;
    case GroupCodes::float16:
      return CodeKind::float16;
    case GroupCodes::bfloat16:
      break;
  }
  return CodeKind::bfloat16;
}

ScaleKind kind_of(GroupScales scales) {
  switch (scales) {
    case GroupScales::none:
      return ScaleKind::none;
    case GroupScales::bits8:
      return ScaleKind::float8;
    case GroupScales::bits16:
      return ScaleKind::float16;
    case GroupScales::bits32:
      return ScaleKind::float32;
    case GroupScales::nested:
      break;
  }
  return ScaleKind::nested;
}

std::byte random_byte(SplitMix64& numbers) {
  return static_cast<std::byte>(numbers.next_bits() >> 56U);
}

/// Without the exponent's upper bit, which the last byte of a float holds, floats are below 2.
std::vector<std::byte> random_codes(const GroupedWeights& weights, SplitMix64& numbers) {
  std::vector<std::byte> codes(static_cast<std::size_t>(weights.rows * weights.row_bytes()));
  std::ranges::generate(codes, [&] { return random_byte(numbers); });
  const bool are_integers = weights.kind == CodeKind::nibble || weights.kind == CodeKind::int8;
  if (are_integers) return codes;
  const std::size_t bytes = static_cast<std::size_t>(checkpoint::code_bits(weights.kind) / 8);
  for (std::size_t i = bytes - 1; i < codes.size(); i += bytes) codes[i] &= std::byte{0xBF};
  return codes;
}

/// The bytes of a scale of 2^-6.
std::vector<std::byte> one_scale(ScaleKind kind) {
  const auto bytes_of = [](std::uint32_t bits, std::size_t count) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(bits);
    return std::vector(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  };
  switch (kind) {
    case ScaleKind::float32:
      return bytes_of(std::bit_cast<std::uint32_t>(0x1p-6F), 4);
    case ScaleKind::float16:
      return bytes_of(0x2400U, 2);
    case ScaleKind::bfloat16:
      return bytes_of(std::bit_cast<std::uint32_t>(0x1p-6F) >> 16U, 2);
    case ScaleKind::float8:
      return bytes_of(0x08U, 1);
    case ScaleKind::exponent:
      return bytes_of(127U - 6U, 1);
    case ScaleKind::nested:
      return bytes_of(1U, 1);
    case ScaleKind::none:
      break;
  }
  return {};
}

void add_scales(const GroupFormat& format, GroupedWeights& weights) {
  ScaleGrid& scales = weights.scales;
  scales.kind = kind_of(format.scales);
  scales.rows_per_scale = format.grain.out == 0 ? weights.rows : format.grain.out;
  const std::int64_t blocks = (weights.rows + scales.rows_per_scale - 1) / scales.rows_per_scale;
  const std::vector<std::byte> one = one_scale(scales.kind);
  for (std::int64_t i = 0; i < blocks * weights.groups(); ++i) {
    scales.values.insert(scales.values.end(), one.begin(), one.end());
  }
  if (scales.kind != ScaleKind::nested) return;
  constexpr std::int64_t kScalesPerSecondScale = 256;
  const std::int64_t count = weights.rows * weights.groups();
  scales.table[1] = 1;
  scales.second_scales.assign(
      static_cast<std::size_t>((count + kScalesPerSecondScale - 1) / kScalesPerSecondScale),
      0x1p-6F);
}

}  // namespace

GroupedWeights random_groups(const GroupFormat& format, std::int64_t rows, std::int64_t columns,
                             SplitMix64& numbers) {
  GroupedWeights weights{.rows = rows, .columns = columns, .kind = kind_of(format.codes)};
  const std::int64_t group = format.grain.in;
  const bool spans_row = group == 0 || format.scales == GroupScales::none;
  weights.group = spans_row ? columns : std::min(group, columns);
  weights.levels = checkpoint::integer_levels(8);
  weights.codes = random_codes(weights, numbers);
  add_scales(format, weights);
  if (!format.has_zeros) return weights;
  weights.zeros.resize(static_cast<std::size_t>(rows * weights.groups()));
  for (std::uint8_t& zero : weights.zeros) {
    zero = std::to_integer<std::uint8_t>(random_byte(numbers) & std::byte{15});
  }
  return weights;
}

std::int64_t bytes_of(const GroupedWeights& weights) {
  const std::int64_t zeros = std::ssize(weights.zeros) * checkpoint::code_bits(weights.kind) / 8;
  return std::ssize(weights.codes) + std::ssize(weights.scales.values) + zeros;
}

}  // namespace headroom::measured
