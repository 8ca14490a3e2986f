#include "random_groups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "float16_bits.h"
#include "kernels/bfloat16.h"

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

/// Eight bits are E4M3 in NVFP4, whose scales cover 16 values (NVIDIA, "Introducing NVFP4"), and
/// powers of two in the microscaling formats.
ScaleKind kind_of(const GroupFormat& format) {
  constexpr BlockShape kNvfp4{1, 16};
  switch (format.scales) {
    case GroupScales::none:
      return ScaleKind::none;
    case GroupScales::bits8:
      return format.codes == GroupCodes::four_bits && format.grain == kNvfp4 ? ScaleKind::float8
                                                                             : ScaleKind::exponent;
    case GroupScales::bits16:
      return ScaleKind::float16;
    case GroupScales::bits32:
      return ScaleKind::float32;
    case GroupScales::nested:
      break;
  }
  return ScaleKind::nested;
}

/// NormalFloat4 (arXiv 2305.14314, appendix E; bitsandbytes, functional.py, get_4bit_type).
constexpr std::array<float, 16> kNormalFloat4{-1.0F,        -0.6961928F,  -0.52507305F, -0.3949175F,
                                              -0.28444138F, -0.18477343F, -0.09105004F, 0.0F,
                                              0.0795803F,   0.1609302F,   0.2461123F,   0.33791524F,
                                              0.44070983F,  0.562617F,    0.72295684F,  1.0F};

/// Values of four bits: floats with scales of eight bits, NormalFloat4 with nested ones, else
/// integers. Zero points are among them, or 8.
std::array<float, 16> levels_of(const GroupFormat& format) {
  if (format.scales == GroupScales::bits8) return checkpoint::float4_levels();
  if (format.scales == GroupScales::nested) return kNormalFloat4;
  return checkpoint::integer_levels(format.has_zeros ? 0 : 8);
}

template <class T>
void append_bytes(T value, std::vector<std::byte>& bytes) {
  const auto all = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), all.begin(), all.end());
}

/// Random integers and E4M3. Without the exponent's upper bit these floats are below 2.
std::vector<std::byte> random_codes(const GroupedWeights& weights, SplitMix64& numbers) {
  std::vector<std::byte> codes(static_cast<std::size_t>(weights.rows * weights.row_bytes()));
  numbers.fill(codes);
  if (weights.kind == CodeKind::float8) {
    for (std::byte& code : codes) code &= std::byte{0xBF};
  }
  return codes;
}

/// Uniform values of 16 bits, without scales.
std::vector<std::byte> random_values(const GroupedWeights& weights, float deviation,
                                     SplitMix64& numbers) {
  std::vector<std::byte> codes;
  codes.reserve(static_cast<std::size_t>(weights.rows * weights.row_bytes()));
  const float width = std::sqrt(3.0F) * deviation;  // of ±width, the deviation is width/√3
  for (std::int64_t i = 0; i < weights.rows * weights.columns; ++i) {
    append_bytes(bits_of_16(weights.kind, width * numbers.next()), codes);
  }
  return codes;
}

/// Number between 0.75 and 1.25 with a random sign: codes without zero points have a mean of half a
/// step below 0.
float near_one(SplitMix64& numbers) {
  const float number = numbers.next();
  return std::copysign(0.75F + std::abs(number) / 2, number);
}

/// Appends a scale near `unit`, or near 1 if the grid has a factor.
void append_scale(float unit, SplitMix64& numbers, ScaleGrid& scales) {
  const auto bits = static_cast<std::uint8_t>(numbers.next_bits() >> 56U);
  switch (scales.kind) {
    case ScaleKind::float32:
      return append_bytes(unit * near_one(numbers), scales.values);
    case ScaleKind::float16:
      return append_bytes(float16_bits(unit * near_one(numbers)), scales.values);
    case ScaleKind::bfloat16:
      return append_bytes(bfloat16_bits(unit * near_one(numbers)), scales.values);
    case ScaleKind::float8:  // 0x34 is 0.75, 0x3B is 1.375
      return append_bytes(static_cast<std::uint8_t>(0x34U + (bits & 7U)), scales.values);
    case ScaleKind::exponent:  // the power of two, or the next one
      return append_bytes(
          static_cast<std::uint8_t>(127 + std::lround(std::log2(unit)) + (bits & 1)),
          scales.values);
    case ScaleKind::nested:
      return append_bytes(bits, scales.values);
    case ScaleKind::none:
      return;
  }
}

/// Adds the table and the second scales of nested scales: that of code i is
/// unit·(1 + (i − 127.5)/512).
void add_second_scales(std::int64_t count, float unit, ScaleGrid& scales) {
  constexpr std::int64_t kScalesPerSecondScale = 256;
  for (std::size_t i = 0; i < scales.table.size(); ++i) {
    scales.table[i] = (static_cast<float>(i) - 127.5F) / 512;
  }
  scales.offset = unit;
  scales.second_scales.assign(
      static_cast<std::size_t>((count + kScalesPerSecondScale - 1) / kScalesPerSecondScale), unit);
}

/// Replaces the scales by others near `unit`.
void set_scales(const GroupFormat& format, float unit, SplitMix64 numbers,
                GroupedWeights& weights) {
  ScaleGrid& scales = weights.scales;
  scales = {.kind = kind_of(format)};
  scales.rows_per_scale = format.grain.out == 0 ? weights.rows : format.grain.out;
  if (scales.kind == ScaleKind::float8) scales.factor = unit;
  const std::int64_t blocks = (weights.rows + scales.rows_per_scale - 1) / scales.rows_per_scale;
  const std::int64_t count = blocks * weights.groups();
  for (std::int64_t i = 0; i < count; ++i) append_scale(unit, numbers, scales);
  if (scales.kind == ScaleKind::nested) add_second_scales(count, unit, scales);
}

/// The first rows of `weights`, some ten thousand values, with scales near 1: those of `weights` in
/// units.
GroupedWeights sample_of(const GroupFormat& format, const GroupedWeights& weights,
                         const SplitMix64& numbers) {
  constexpr std::int64_t kValues = 1 << 16;
  GroupedWeights sample{.rows = std::min(weights.rows, 1 + kValues / weights.columns),
                        .columns = weights.columns,
                        .kind = weights.kind,
                        .levels = weights.levels,
                        .group = weights.group};
  const auto first = [&](const auto& all, std::int64_t row) {
    return std::vector(all.begin(), all.begin() + sample.rows * row);
  };
  sample.codes = first(weights.codes, weights.row_bytes());
  if (!weights.zeros.empty()) sample.zeros = first(weights.zeros, weights.groups());
  set_scales(format, 1, numbers, sample);
  return sample;
}

/// Root mean square of the values.
float deviation_of(const GroupedWeights& weights) {
  std::vector<float> values(static_cast<std::size_t>(weights.columns));
  double sum = 0;
  for (std::int64_t row = 0; row < weights.rows; ++row) {
    checkpoint::dequantise_row(weights, row, values);
    for (const float value : values) sum += std::pow(static_cast<double>(value), 2);
  }
  return static_cast<float>(std::sqrt(sum / static_cast<double>(weights.rows * weights.columns)));
}

/// Zero points in the middle of the codes: their mean is that of random codes.
void add_zeros(SplitMix64& numbers, GroupedWeights& weights) {
  const unsigned least = weights.kind == CodeKind::nibble ? 6U : 0xFEU;  // of int8, -2
  weights.zeros.resize(static_cast<std::size_t>(weights.rows * weights.groups()));
  for (std::uint8_t& zero : weights.zeros) {
    zero = static_cast<std::uint8_t>(least + (numbers.next_bits() >> 62U));
  }
}

}  // namespace

std::uint16_t bits_of_16(CodeKind kind, float value) {
  return kind == CodeKind::float16 ? float16_bits(value) : bfloat16_bits(round_to_bfloat16(value));
}

GroupedWeights empty_groups(const GroupFormat& format, std::int64_t rows, std::int64_t columns) {
  GroupedWeights weights{.rows = rows, .columns = columns, .kind = kind_of(format.codes)};
  const std::int64_t group = format.grain.in;
  const bool spans_row = group == 0 || format.scales == GroupScales::none;
  weights.group = spans_row ? columns : std::min(group, columns);
  return weights;
}

GroupedWeights random_groups(const GroupFormat& format, std::int64_t rows, std::int64_t columns,
                             float deviation, SplitMix64& numbers) {
  GroupedWeights weights = empty_groups(format, rows, columns);
  if (format.scales == GroupScales::none) {
    weights.codes = random_values(weights, deviation, numbers);
    return weights;
  }
  weights.levels = levels_of(format);
  weights.codes = random_codes(weights, numbers);
  if (format.has_zeros) add_zeros(numbers, weights);
  const SplitMix64 of_scales(numbers.next_bits());
  const float unit = deviation / deviation_of(sample_of(format, weights, of_scales));
  set_scales(format, unit, of_scales, weights);
  return weights;
}

std::int64_t bytes_of(const GroupedWeights& weights) {
  const std::int64_t zeros = std::ssize(weights.zeros) * checkpoint::code_bits(weights.kind) / 8;
  return std::ssize(weights.codes) + std::ssize(weights.scales.values) + zeros;
}

}  // namespace headroom::measured
