#include "grouped_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "element_type.h"
#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

constexpr std::int64_t kScalesPerSecondScale = 256;  // nested_blocksize of bitsandbytes

/// Number `index` of an array of little-endian T, at any alignment.
template <class T>
T number_at(std::span<const std::byte> bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

/// 2^(bits − 127); 255 is NaN. Source: OCP Microscaling Formats 1.0, section 5.4.1.
float exponent_to_float(std::uint8_t bits) {
  return bits == 0xFF ? std::nanf("") : std::ldexp(1.0F, static_cast<int>(bits) - 127);
}

/// Scale `index` of the grid.
float scale_at(const ScaleGrid& grid, std::int64_t index) {
  const std::span<const std::byte> values(grid.values);
  switch (grid.kind) {
    case ScaleKind::float32:
      return grid.factor * number_at<float>(values, index);
    case ScaleKind::float16:
      return grid.factor * half_to_float(number_at<std::uint16_t>(values, index));
    case ScaleKind::bfloat16:
      return grid.factor * bfloat16_to_float(number_at<std::uint16_t>(values, index));
    case ScaleKind::float8:
      return grid.factor * float8_to_float(number_at<std::uint8_t>(values, index));
    case ScaleKind::exponent:
      return grid.factor * exponent_to_float(number_at<std::uint8_t>(values, index));
    case ScaleKind::nested: {
      const auto second = static_cast<std::size_t>(index / kScalesPerSecondScale);
      // Rounds once, as kernels do on machines that fuse.
      return std::fma(grid.table.at(number_at<std::uint8_t>(values, index)),
                      grid.second_scales.at(second), grid.offset);
    }
    case ScaleKind::none:
      break;
  }
  return 1;
}

float value_of(const GroupedWeights& weights, const std::byte* row, std::int64_t column) {
  const std::span<const std::byte> bytes(row, static_cast<std::size_t>(weights.row_bytes()));
  switch (weights.kind) {
    case CodeKind::int8:
      return static_cast<float>(number_at<std::int8_t>(bytes, column));
    case CodeKind::float8:
      return float8_to_float(number_at<std::uint8_t>(bytes, column));
    case CodeKind::float16:
      return half_to_float(number_at<std::uint16_t>(bytes, column));
    case CodeKind::bfloat16:
      return bfloat16_to_float(number_at<std::uint16_t>(bytes, column));
    case CodeKind::nibble:
      break;
  }
  const unsigned pair = number_at<std::uint8_t>(bytes, column / 2);
  return weights.levels.at(column % 2 == 0 ? pair & 15U : pair >> 4U);
}

float zero_of(const GroupedWeights& weights, std::int64_t row, std::int64_t group) {
  if (weights.zeros.empty()) return 0;
  const auto at = static_cast<std::size_t>(row * weights.groups() + group);
  const std::uint8_t zero = weights.zeros[at];
  return weights.kind == CodeKind::int8 ? static_cast<float>(std::bit_cast<std::int8_t>(zero))
                                        : static_cast<float>(zero);
}

/// Returns whether the rows follow each other.
bool is_run(std::span<const std::int64_t> rows) {
  const auto has_gap = [](std::int64_t a, std::int64_t b) { return b != a + 1; };
  return std::ranges::adjacent_find(rows, has_gap) == rows.end();
}

/// Appends row `row` of `from`, whose rows have `size` elements.
template <class T>
void append_row(const std::vector<T>& from, std::int64_t row, std::int64_t size,
                std::vector<T>& to) {
  const auto first = from.begin() + row * size;
  to.insert(to.end(), first, first + size);
}

/// Scales of rows that do not follow each other: each row gets its own, in float32.
ScaleGrid scales_by_row(const GroupedWeights& weights, std::span<const std::int64_t> rows) {
  ScaleGrid grid{.kind = ScaleKind::float32};
  grid.values.reserve(rows.size() * static_cast<std::size_t>(weights.groups()) * sizeof(float));
  for (const std::int64_t row : rows) {
    for (std::int64_t group = 0; group < weights.groups(); ++group) {
      const auto bytes =
          std::bit_cast<std::array<std::byte, sizeof(float)>>(scale_of(weights, row, group));
      grid.values.insert(grid.values.end(), bytes.begin(), bytes.end());
    }
  }
  return grid;
}

ScaleGrid selected_scales(const GroupedWeights& weights, std::span<const std::int64_t> rows) {
  const ScaleGrid& all = weights.scales;
  const bool is_plain = all.rows_per_scale == 1 && all.kind != ScaleKind::nested;
  if (!is_plain && !is_run(rows)) return scales_by_row(weights, rows);
  ScaleGrid grid = all;
  if (!is_plain) {
    grid.first_row += rows.front();
    return grid;
  }
  grid.values.clear();
  const std::int64_t size = scale_bytes(all.kind) * weights.groups();
  for (const std::int64_t row : rows) append_row(all.values, row, size, grid.values);
  return grid;
}

/// Returns false for infinities and NaN: all bits of the exponent are set, and in float8 all bits
/// but the sign.
bool is_finite(CodeKind kind, unsigned bits) {
  switch (kind) {
    case CodeKind::float8:
      return (bits & 0x7FU) != 0x7FU;
    case CodeKind::float16:
      return (bits & 0x7C00U) != 0x7C00U;
    case CodeKind::bfloat16:
      return (bits & 0x7F80U) != 0x7F80U;
    case CodeKind::nibble:
    case CodeKind::int8:
      break;
  }
  return true;
}

bool has_finite_codes(const GroupedWeights& weights) {
  if (weights.kind == CodeKind::int8) return true;
  if (weights.kind == CodeKind::nibble) {
    return std::ranges::all_of(weights.levels, [](float level) { return std::isfinite(level); });
  }
  const std::span<const std::byte> bytes(weights.codes);
  const std::int64_t count = weights.rows * weights.columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const unsigned bits = code_bits(weights.kind) == 8 ? number_at<std::uint8_t>(bytes, i)
                                                       : number_at<std::uint16_t>(bytes, i);
    if (!is_finite(weights.kind, bits)) return false;
  }
  return true;
}

bool has_finite_scales(const GroupedWeights& weights) {
  for (std::int64_t row = 0; row < weights.rows; ++row) {
    for (std::int64_t group = 0; group < weights.groups(); ++group) {
      if (!std::isfinite(scale_of(weights, row, group))) return false;
    }
  }
  return true;
}

}  // namespace

std::int64_t scale_bytes(ScaleKind kind) noexcept {
  switch (kind) {
    case ScaleKind::none:
      return 0;
    case ScaleKind::float32:
      return 4;
    case ScaleKind::float16:
    case ScaleKind::bfloat16:
      return 2;
    case ScaleKind::float8:
    case ScaleKind::exponent:
    case ScaleKind::nested:
      break;
  }
  return 1;
}

std::int64_t code_bits(CodeKind kind) noexcept {
  switch (kind) {
    case CodeKind::nibble:
      return 4;
    case CodeKind::int8:
    case CodeKind::float8:
      return 8;
    case CodeKind::float16:
    case CodeKind::bfloat16:
      break;
  }
  return 16;
}

std::array<float, 16> integer_levels(int zero) noexcept {
  std::array<float, 16> levels{};
  for (int i = 0; i < 16; ++i) {
    levels[static_cast<std::size_t>(i)] = static_cast<float>(i - zero);
  }
  return levels;
}

std::array<float, 16> float4_levels() noexcept {
  return {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
}

float float8_to_float(std::uint8_t bits) noexcept {
  constexpr int kBias = 7;
  const auto exponent = static_cast<int>(bits >> 3U & 15U);
  const auto fraction = static_cast<float>(bits & 7U) / 8;
  if ((bits & 0x7FU) == 0x7FU) return std::nanf("");
  const float magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - kBias) : std::ldexp(1 + fraction, exponent - kBias);
  return (bits & 0x80U) != 0 ? -magnitude : magnitude;
}

float scale_of(const GroupedWeights& weights, std::int64_t row, std::int64_t group) {
  const ScaleGrid& grid = weights.scales;
  const std::int64_t block = (grid.first_row + row) / grid.rows_per_scale;
  return scale_at(grid, block * weights.groups() + group);
}

void dequantise_row(const GroupedWeights& weights, std::int64_t row, std::span<float> to) {
  const std::byte* const codes = weights.codes.data() + row * weights.row_bytes();
  for (std::int64_t group = 0; group < weights.groups(); ++group) {
    const float scale = scale_of(weights, row, group);
    const float zero = zero_of(weights, row, group);
    const std::int64_t end = std::min(weights.columns, (group + 1) * weights.group);
    for (std::int64_t column = group * weights.group; column < end; ++column) {
      const std::size_t at =
          weights.order.empty()
              ? static_cast<std::size_t>(column)
              : static_cast<std::size_t>(weights.order[static_cast<std::size_t>(column)]);
      to[at] = scale * (value_of(weights, codes, column) - zero);
    }
  }
}

GroupedWeights select_rows(const GroupedWeights& weights, std::span<const std::int64_t> rows) {
  GroupedWeights part;
  part.rows = std::ssize(rows);
  part.columns = weights.columns;
  part.kind = weights.kind;
  part.levels = weights.levels;
  part.group = weights.group;
  part.order = weights.order;
  if (rows.empty()) return part;
  part.scales = selected_scales(weights, rows);
  part.codes.reserve(rows.size() * static_cast<std::size_t>(weights.row_bytes()));
  for (const std::int64_t row : rows) {
    append_row(weights.codes, row, weights.row_bytes(), part.codes);
    if (!weights.zeros.empty()) append_row(weights.zeros, row, weights.groups(), part.zeros);
  }
  return part;
}

bool has_columns(const GroupedWeights& weights, std::int64_t first, std::int64_t count) noexcept {
  constexpr std::int64_t kBits = 8;
  const std::int64_t end = first + count;
  const bool in_order = weights.order.empty() && count > 0 && end <= weights.columns;
  const bool whole_bytes =
      first * code_bits(weights.kind) % kBits == 0 && count * code_bits(weights.kind) % kBits == 0;
  const bool in_one_group = first / weights.group == (end - 1) / weights.group;
  const bool whole_groups =
      first % weights.group == 0 && (end % weights.group == 0 || end == weights.columns);
  return in_order && whole_bytes && (in_one_group || whole_groups);
}

namespace {

/// Bytes [first, first + count) of each row of `size` bytes.
template <class T>
std::vector<T> columns_of_rows(const std::vector<T>& from, std::int64_t size, std::int64_t first,
                               std::int64_t count) {
  std::vector<T> part;
  part.reserve(from.size() / static_cast<std::size_t>(size) * static_cast<std::size_t>(count));
  for (auto row = from.begin(); row != from.end(); row += size) {
    part.insert(part.end(), row + first, row + first + count);
  }
  return part;
}

}  // namespace

GroupedWeights select_columns(const GroupedWeights& weights, std::int64_t first,
                              std::int64_t count) {
  constexpr std::int64_t kBits = 8;
  const std::int64_t groups = weights.groups();
  const std::int64_t first_group = first / weights.group;
  const std::int64_t end_group = (first + count - 1) / weights.group + 1;
  GroupedWeights part = weights;
  part.columns = count;
  part.group = std::min(weights.group, count);
  const std::int64_t bits = code_bits(weights.kind);
  part.codes = columns_of_rows(weights.codes, weights.row_bytes(), first * bits / kBits,
                               count * bits / kBits);
  if (weights.scales.kind == ScaleKind::nested) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(weights.rows));
    std::iota(rows.begin(), rows.end(), 0);
    part.scales = scales_by_row(weights, rows);
  }
  const std::int64_t bytes = scale_bytes(part.scales.kind);
  if (bytes > 0) {
    part.scales.values = columns_of_rows(part.scales.values, groups * bytes, first_group * bytes,
                                         (end_group - first_group) * bytes);
  }
  if (!weights.zeros.empty()) {
    part.zeros = columns_of_rows(weights.zeros, groups, first_group, end_group - first_group);
  }
  return part;
}

void require_finite(const GroupedWeights& weights, const std::string& where) {
  if (has_finite_codes(weights) && has_finite_scales(weights)) return;
  throw Error(ErrorCode::invalid_input, "one of its values or scales is not a finite number", where,
              "download or save the weights again");
}

}  // namespace headroom::checkpoint
