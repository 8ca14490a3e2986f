// Parts of quantised matrices have the values of the whole, whatever their codes and scales.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "grouped_weights.h"
#include "support/data.h"

using namespace headroom::checkpoint;
using headroom::test::refusal_of;

namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kColumns = 24;
constexpr std::int64_t kGroup = 8;

/// Bytes of finite numbers: as float16, bfloat16 and both kinds of float8, 0x30 to 0x3F are small.
std::vector<std::byte> small_numbers(std::int64_t count, std::mt19937& random) {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < count; ++i)
    bytes.push_back(static_cast<std::byte>(0x30 + random() % 16));
  return bytes;
}

ScaleGrid scales_of(ScaleKind kind, std::int64_t rows_per_scale, std::mt19937& random) {
  ScaleGrid grid;
  grid.kind = kind;
  grid.rows_per_scale = rows_per_scale;
  grid.factor = 0.5F;
  grid.offset = 0.25F;
  const std::int64_t scales = kRows / rows_per_scale * (kColumns / kGroup);
  grid.values = small_numbers(scales * scale_bytes(kind), random);
  for (std::size_t i = 0; i < grid.table.size(); ++i) grid.table[i] = static_cast<float>(i) / 64;
  grid.second_scales = {1.5F};
  return grid;
}

GroupedWeights matrix_of(CodeKind codes, ScaleKind scales, std::int64_t rows_per_scale) {
  std::mt19937 random(7);
  GroupedWeights weights;
  weights.rows = kRows;
  weights.columns = kColumns;
  weights.kind = codes;
  weights.levels = integer_levels(8);
  weights.group = kGroup;
  weights.codes = small_numbers(kRows * weights.row_bytes(), random);
  weights.scales = scales_of(scales, rows_per_scale, random);
  if (codes == CodeKind::nibble || codes == CodeKind::int8) {
    for (std::int64_t i = 0; i < kRows * weights.groups(); ++i)
      weights.zeros.push_back(static_cast<std::uint8_t>(random() % 16));
  }
  return weights;
}

std::vector<float> row_of(const GroupedWeights& weights, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(weights.columns));
  dequantise_row(weights, row, values);
  return values;
}

void check_rows(const GroupedWeights& whole, const std::vector<std::int64_t>& rows) {
  const GroupedWeights part = select_rows(whole, rows);
  REQUIRE(part.rows == std::ssize(rows));
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK(row_of(part, static_cast<std::int64_t>(i)) == row_of(whole, rows[i]));
}

void check_columns(const GroupedWeights& whole, std::int64_t first, std::int64_t count) {
  REQUIRE(has_columns(whole, first, count));
  const GroupedWeights part = select_columns(whole, first, count);
  REQUIRE(part.columns == count);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::vector<float> all = row_of(whole, row);
    const std::vector<float> expected(all.begin() + first, all.begin() + first + count);
    CHECK(row_of(part, row) == expected);
  }
}

}  // namespace

TEST_CASE("rows and columns of a quantised matrix have the values of the whole") {
  for (const CodeKind codes : {CodeKind::nibble, CodeKind::int8, CodeKind::float8,
                               CodeKind::float16, CodeKind::bfloat16}) {
    for (const ScaleKind scales :
         {ScaleKind::none, ScaleKind::float32, ScaleKind::float16, ScaleKind::bfloat16,
          ScaleKind::float8, ScaleKind::exponent, ScaleKind::nested}) {
      for (const std::int64_t rows_per_scale : {1, 3}) {
        const GroupedWeights whole = matrix_of(codes, scales, rows_per_scale);
        require_finite(whole, "here");
        check_rows(whole, {1, 2, 3});
        check_rows(whole, {5, 0, 3});
        check_rows(whole, {});
        check_columns(whole, 8, 16);
        check_columns(whole, 18, 4);
      }
    }
  }
}

TEST_CASE("columns are a part only in whole groups or within one, and in whole bytes") {
  GroupedWeights weights = matrix_of(CodeKind::nibble, ScaleKind::float16, 1);
  CHECK(has_columns(weights, 8, 8));
  CHECK(has_columns(weights, 2, 4));
  CHECK_FALSE(has_columns(weights, 1, 4));   // begins within a byte
  CHECK_FALSE(has_columns(weights, 2, 3));   // ends within a byte
  CHECK_FALSE(has_columns(weights, 4, 8));   // begins within a group, and ends in another
  CHECK_FALSE(has_columns(weights, 8, 12));  // ends within a group
  CHECK_FALSE(has_columns(weights, 8, 0));
  CHECK_FALSE(has_columns(weights, 8, 24));
  weights.columns = 20;
  CHECK(has_columns(weights, 8, 12));  // the last group has fewer columns
  weights.order = {1, 0};
  CHECK_FALSE(has_columns(weights, 8, 8));
}

TEST_CASE("codes, levels and scales that are no finite numbers are refused") {
  const auto refused = [](const GroupedWeights& weights) {
    return refusal_of([&] { require_finite(weights, "here"); }).starts_with("here: ");
  };
  GroupedWeights weights = matrix_of(CodeKind::float8, ScaleKind::exponent, 1);
  weights.scales.values[2] = std::byte{0xFF};
  CHECK(std::isnan(scale_of(weights, 0, 2)));
  CHECK(refused(weights));
  weights = matrix_of(CodeKind::float8, ScaleKind::none, 1);
  weights.codes[5] = std::byte{0xFF};
  CHECK(refused(weights));
  for (const CodeKind codes : {CodeKind::float16, CodeKind::bfloat16}) {
    weights = matrix_of(codes, ScaleKind::none, 1);
    weights.codes[10] = std::byte{0xFF};
    weights.codes[11] = std::byte{0x7F};
    CHECK(refused(weights));
  }
  weights = matrix_of(CodeKind::nibble, ScaleKind::none, 1);
  weights.levels[3] = std::nanf("");
  CHECK(refused(weights));
}
