// Linear layers with weights in groups of codes, against a plain loop in double precision over
// their dequantised rows.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "gemm.h"
#include "grouped_weights.h"
#include "headroom/error.h"
#include "kernel_data.h"
#include "random_numbers.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;
using namespace headroom::checkpoint;

namespace {

constexpr std::array kKinds{CodeKind::nibble, CodeKind::int8, CodeKind::float8, CodeKind::float16,
                            CodeKind::bfloat16};

bool has_16_bits(CodeKind kind) { return kind == CodeKind::float16 || kind == CodeKind::bfloat16; }

/// A random byte; codes of floats stay finite.
std::byte random_byte(CodeKind kind, SplitMix64& numbers) {
  const auto bits = static_cast<unsigned>(static_cast<int>(128 * numbers.next()) + 128) & 0xFFU;
  // Without the exponent's upper bit, floats of eight bits are below 2, and of 16 as well.
  const bool is_float = kind != CodeKind::nibble && kind != CodeKind::int8;
  return static_cast<std::byte>(is_float ? bits & 0xBFU : bits);
}

/// Bytes of one scale near 0.05.
std::vector<std::byte> scale_bytes(ScaleKind kind, SplitMix64& numbers) {
  const auto value = static_cast<float>(0.05 + 0.02 * static_cast<double>(numbers.next()));
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto bytes_of = [](std::uint32_t word, std::size_t count) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(word);
    return std::vector<std::byte>(bytes.begin(),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(count));
  };
  switch (kind) {
    case ScaleKind::float32:
      return bytes_of(bits, 4);
    case ScaleKind::bfloat16:
      return bytes_of(bits >> 16U, 2);
    case ScaleKind::float16:  // 2^-5 to 2^-4
      return bytes_of(0x2800U | (bits & 0x3FFU), 2);
    case ScaleKind::float8:
      return bytes_of(0x10U | (bits & 7U), 1);
    case ScaleKind::exponent:
      return bytes_of(122U + (bits & 1U), 1);
    case ScaleKind::nested:
      return bytes_of(bits & 0xFFU, 1);
    case ScaleKind::none:
      break;
  }
  return {};
}

struct Shape {
  std::int64_t rows = 149;  ///< several tiles of each of two threads, and a part of one
  std::int64_t columns = 192;
  std::int64_t group = 64;
  std::int64_t rows_per_scale = 1;
};

GroupedWeights random_groups(CodeKind kind, ScaleKind scales, const Shape& shape) {
  SplitMix64 numbers(5);
  GroupedWeights weights{.rows = shape.rows, .columns = shape.columns, .kind = kind};
  weights.group = shape.group;
  weights.levels = integer_levels(8);
  weights.codes.resize(static_cast<std::size_t>(weights.rows * weights.row_bytes()));
  for (std::size_t i = 0; i < weights.codes.size(); ++i) {
    const bool is_low = has_16_bits(kind) && i % 2 == 0;
    weights.codes[i] = random_byte(is_low ? CodeKind::int8 : kind, numbers);
  }
  weights.scales.kind = scales;
  weights.scales.rows_per_scale = shape.rows_per_scale;
  if (scales == ScaleKind::nested) {
    for (std::size_t i = 0; i < 256; ++i) {
      weights.scales.table[i] = (static_cast<float>(i) - 128) / 128;
    }
    weights.scales.second_scales = {0.02F, 0.03F, 0.01F, 0.04F, 0.05F, 0.015F, 0.025F, 0.035F,
                                    0.02F, 0.03F, 0.01F, 0.04F, 0.05F, 0.015F, 0.025F, 0.035F};
    weights.scales.offset = 0.05F;
  }
  const std::int64_t blocks = (shape.rows + shape.rows_per_scale - 1) / shape.rows_per_scale;
  for (std::int64_t i = 0; i < blocks * weights.groups(); ++i) {
    const auto bytes = scale_bytes(scales, numbers);
    weights.scales.values.insert(weights.scales.values.end(), bytes.begin(), bytes.end());
  }
  return weights;
}

void add_zeros(GroupedWeights& weights) {
  weights.levels = integer_levels(0);
  for (std::int64_t i = 0; i < weights.rows * weights.groups(); ++i) {
    const auto zero =
        static_cast<std::uint8_t>(i * 7 % (weights.kind == CodeKind::int8 ? 256 : 16));
    weights.zeros.push_back(zero);
  }
}

std::vector<float> row_of(const GroupedWeights& weights, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(weights.columns));
  dequantise_row(weights, row, values);
  return values;
}

/// x·Wᵀ for the rows of x.
std::vector<float> product(const GroupedWeights& weights, std::span<const float> x,
                           ActivationPath path) {
  const GroupPart part{&weights, {}};
  PackedLinear linear(std::span(&part, 1), weights.columns, path);
  const std::int64_t rows = std::ssize(x) / weights.columns;
  std::vector<float> y(static_cast<std::size_t>(rows * weights.rows));
  linear.prepare(rows);
  CHECK(linear.run(x.data(), y.data(), rows) == 2 * rows * weights.columns * weights.rows);
  return y;
}

/// Largest error of a product with int8 activations in units of what their rounding explains: half
/// a step, max|x|/254 in every block of 32 in the codes' order, for every weight; and a unit in
/// the last place of float32 for every term, with the codes' magnitudes before their zero point is
/// subtracted, of at most 255 steps of a weight. Computed by a plain loop in double precision.
double worst_int8_share(const GroupedWeights& weights, std::int64_t rows) {
  const auto x = random_floats(rows * weights.columns, 2);
  const std::vector<float> y = product(weights, x, ActivationPath::int8);
  double worst = 0;
  for (std::int64_t out = 0; out < weights.rows; ++out) {
    const std::vector<float> weight = row_of(weights, out);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span own = std::span(x).subspan(static_cast<std::size_t>(row * weights.columns));
      double sum = 0;
      double bound = 0;
      for (std::int64_t first = 0; first < weights.columns; first += 32) {
        double largest = 0;
        double magnitude = 0;
        double steps = 0;
        for (std::int64_t i = first; i < first + 32; ++i) {
          const auto at = static_cast<std::size_t>(
              weights.order.empty() ? i : weights.order[static_cast<std::size_t>(i)]);
          const auto value = static_cast<double>(weight[at]);
          sum += value * static_cast<double>(own[at]);
          largest = std::max(largest, std::abs(static_cast<double>(own[at])));
          magnitude += std::abs(value);
          steps += static_cast<double>(std::abs(scale_of(weights, out, i / weights.group)));
        }
        bound += largest / 254 * magnitude;
        bound += static_cast<double>(weights.columns + 2) * 0x1p-24 * 255 * largest * steps;
      }
      const double got = static_cast<double>(y[static_cast<std::size_t>(row * weights.rows + out)]);
      if (!std::isfinite(got)) return HUGE_VAL;
      worst = std::max(worst, std::abs(got - sum) / bound);
    }
  }
  return worst;
}

/// Largest error of a product in units of rounding: a unit in the last place of float32 for every
/// term, with the codes' magnitudes before their zero point is subtracted.
double worst_share(const GroupedWeights& weights, std::int64_t rows) {
  const auto x = random_floats(rows * weights.columns, 2);
  const std::vector<float> y = product(weights, x, ActivationPath::float32);
  double worst = 0;
  for (std::int64_t out = 0; out < weights.rows; ++out) {
    const std::vector<float> weight = row_of(weights, out);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t i = 0; i < weights.columns; ++i) {
        const double term =
            static_cast<double>(weight[static_cast<std::size_t>(i)]) *
            static_cast<double>(x[static_cast<std::size_t>(row * weights.columns + i)]);
        sum += term;
        magnitude += std::abs(term);
      }
      const double got = static_cast<double>(y[static_cast<std::size_t>(row * weights.rows + out)]);
      if (!std::isfinite(got)) return HUGE_VAL;
      const double bound = static_cast<double>(weights.columns + 2) * 0x1p-24 * magnitude;
      worst = std::max(worst, std::abs(got - sum) / bound);
    }
  }
  return worst;
}

void check_rows(const GroupedWeights& weights) {
  for (const ActivationPath path : {ActivationPath::float32, ActivationPath::int8}) {
    const GroupPart part{&weights, {}};
    const PackedLinear linear(std::span(&part, 1), weights.columns, path);
    std::vector<float> got(static_cast<std::size_t>(weights.columns));
    for (std::int64_t row = 0; row < weights.rows; ++row) {
      REQUIRE(linear.read_row(row, got.data()));
      CHECK(got == row_of(weights, row));
    }
  }
}

void reorder_columns(GroupedWeights& weights) {
  weights.order.resize(static_cast<std::size_t>(weights.columns));
  for (std::int64_t i = 0; i < weights.columns; ++i) {
    weights.order[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * 5 % weights.columns);
  }
}

}  // namespace

TEST_CASE("products with codes of every kind equal the matrix product within rounding") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const CodeKind kind : kKinds) {
      CAPTURE(static_cast<int>(kind));
      const ScaleKind scales = has_16_bits(kind) ? ScaleKind::none : ScaleKind::float16;
      const GroupedWeights weights = random_groups(kind, scales, {});
      check_rows(weights);
      for (const std::int64_t rows : {1, 3, 4, 5, 8, 14, 70}) {
        CAPTURE(rows);
        CHECK(worst_share(weights, rows) < 1);
      }
    }
  }
}

TEST_CASE("scales of every kind multiply their groups, of one row or of several") {
  for (const ScaleKind kind : {ScaleKind::float32, ScaleKind::float16, ScaleKind::bfloat16,
                               ScaleKind::float8, ScaleKind::exponent, ScaleKind::nested}) {
    CAPTURE(static_cast<int>(kind));
    for (const std::int64_t group : {16, 128, 192}) {
      const GroupedWeights weights = random_groups(CodeKind::nibble, kind, {.group = group});
      check_rows(weights);
      CHECK(worst_share(weights, 3) < 1);
    }
    if (kind == ScaleKind::nested) continue;
    const GroupedWeights shared =
        random_groups(CodeKind::float8, kind, {.group = 128, .rows_per_scale = 20});
    check_rows(shared);
    CHECK(worst_share(shared, 3) < 1);
  }
}

TEST_CASE("zero points are subtracted, and columns are put into the order of their groups") {
  for (const CodeKind kind : {CodeKind::nibble, CodeKind::int8}) {
    GroupedWeights weights = random_groups(kind, ScaleKind::float16, {});
    add_zeros(weights);
    check_rows(weights);
    CHECK(worst_share(weights, 5) < 1);
    reorder_columns(weights);
    check_rows(weights);
    for (const std::int64_t rows : {1, 9}) CHECK(worst_share(weights, rows) < 1);
  }
}

TEST_CASE("codes that are integers multiply int8 activations within what their rounding explains") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const CodeKind kind : {CodeKind::nibble, CodeKind::int8}) {
      CAPTURE(static_cast<int>(kind));
      for (const std::int64_t group : {16, 48, 64, 128, 192}) {
        CAPTURE(group);
        GroupedWeights weights = random_groups(kind, ScaleKind::float16, {.group = group});
        CHECK(worst_int8_share(weights, 3) < 1);
        add_zeros(weights);
        for (const std::int64_t rows : {1, 3, 4, 5, 8, 14, 70}) {
          CAPTURE(rows);
          CHECK(worst_int8_share(weights, rows) < 1);
        }
        reorder_columns(weights);
        CHECK(worst_int8_share(weights, 5) < 1);
      }
    }
    GroupedWeights floats = random_groups(CodeKind::nibble, ScaleKind::float8, {.group = 16});
    floats.levels = float4_levels();
    check_rows(floats);
    CHECK(worst_int8_share(floats, 5) < 1);
  }
}

TEST_CASE("products with int8 activations are those of rounded inputs, not of float32 ones") {
  for (const CodeKind kind : {CodeKind::nibble, CodeKind::int8}) {
    const GroupedWeights weights = random_groups(kind, ScaleKind::float16, {});
    const auto x = random_floats(weights.columns, 2);
    CHECK(product(weights, x, ActivationPath::int8) !=
          product(weights, x, ActivationPath::float32));
    // Integers up to 127 in every block of 32 are their own rounding.
    std::vector<float> integers(static_cast<std::size_t>(weights.columns));
    for (std::size_t i = 0; i < integers.size(); ++i) {
      integers[i] = static_cast<float>(static_cast<int>(i * 37 % 32 * 8) - 127);
    }
    for (std::size_t i = 0; i < integers.size(); i += 32) integers[i] = 127;
    const std::vector<float> exact = product(weights, integers, ActivationPath::float32);
    const std::vector<float> got = product(weights, integers, ActivationPath::int8);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(static_cast<double>(got[i]) ==
            doctest::Approx(static_cast<double>(exact[i])).epsilon(1e-4));
    }
  }
}

TEST_CASE("codes without integer values keep float32 activations where int8 is asked for") {
  GroupedWeights nf4 = random_groups(CodeKind::nibble, ScaleKind::float32, {});
  for (std::size_t i = 0; i < nf4.levels.size(); ++i) {
    nf4.levels[i] = std::sin(static_cast<float>(i));
  }
  const GroupedWeights narrow =
      random_groups(CodeKind::int8, ScaleKind::float32, {.columns = 200, .group = 40});
  const GroupedWeights kept[] = {nf4, random_groups(CodeKind::float8, ScaleKind::float32, {}),
                                 random_groups(CodeKind::bfloat16, ScaleKind::none, {}), narrow};
  for (const GroupedWeights& weights : kept) {
    const auto x = random_floats(3 * weights.columns, 2);
    CHECK(product(weights, x, ActivationPath::int8) ==
          product(weights, x, ActivationPath::float32));
  }
}

TEST_CASE("parts of several kinds stack along the output, each with its bias or none") {
  const GroupedWeights first = random_groups(CodeKind::nibble, ScaleKind::float16, {});
  const GroupedWeights second = random_groups(CodeKind::bfloat16, ScaleKind::none, {.rows = 19});
  const auto bias = random_floats(19, 3);
  const std::array parts{GroupPart{&first, {}}, GroupPart{&second, bias}};
  PackedLinear linear(parts, first.columns, ActivationPath::float32);
  REQUIRE(linear.out_features() == 149 + 19);
  const auto x = random_floats(first.columns, 4);
  std::vector<float> y(149 + 19);
  linear.prepare(1);
  (void)linear.run(x.data(), y.data(), 1);
  const GroupPart alone{&second, {}};
  PackedLinear own(std::span(&alone, 1), first.columns, ActivationPath::float32);
  std::vector<float> expected(19);
  own.prepare(1);
  (void)own.run(x.data(), expected.data(), 1);
  for (std::size_t i = 0; i < 19; ++i) CHECK(y[149 + i] == expected[i] + bias[i]);
}

TEST_CASE("selected rows keep their values, whatever shares their scales") {
  for (const std::int64_t rows_per_scale : {1, 20}) {
    const GroupedWeights all =
        random_groups(CodeKind::int8, ScaleKind::bfloat16, {.rows_per_scale = rows_per_scale});
    for (const std::vector<std::int64_t>& rows :
         {std::vector<std::int64_t>{18, 19, 20, 21}, std::vector<std::int64_t>{3, 5, 30}}) {
      const GroupedWeights part = select_rows(all, rows);
      check_rows(part);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(row_of(part, static_cast<std::int64_t>(i)) == row_of(all, rows[i]));
      }
    }
  }
}

TEST_CASE("selected columns keep their values, in whole groups or within one") {
  for (const CodeKind kind : {CodeKind::nibble, CodeKind::int8, CodeKind::float8}) {
    for (const ScaleKind scales :
         {ScaleKind::float32, ScaleKind::float16, ScaleKind::exponent, ScaleKind::nested}) {
      GroupedWeights all = random_groups(kind, scales, {.rows_per_scale = 1});
      if (kind != CodeKind::float8) add_zeros(all);
      for (const auto& columns : {std::pair{0, 64}, {64, 128}, {128, 64}, {72, 48}}) {
        const int first = columns.first;
        const int count = columns.second;
        CAPTURE(first);
        REQUIRE(has_columns(all, first, count));
        const GroupedWeights part = select_columns(all, first, count);
        CHECK(part.columns == count);
        for (std::int64_t row = 0; row < all.rows; ++row) {
          const std::vector<float> whole = row_of(all, row);
          CHECK(row_of(part, row) ==
                std::vector<float>(whole.begin() + first, whole.begin() + first + count));
        }
      }
      CHECK_FALSE(has_columns(all, 32, 64));  // halves of two groups
      CHECK_FALSE(has_columns(all, 128, 128));
    }
  }
  GroupedWeights ordered = random_groups(CodeKind::nibble, ScaleKind::float16, {});
  CHECK_FALSE(has_columns(ordered, 1, 2));  // within a byte
  ordered.order.resize(static_cast<std::size_t>(ordered.columns));
  CHECK_FALSE(has_columns(ordered, 0, 64));
}

TEST_CASE("groups are held in the bits of their files") {
  GroupedWeights weights = random_groups(CodeKind::nibble, ScaleKind::float16,
                                         {.rows = 64, .columns = 512, .group = 128});
  add_zeros(weights);
  const GroupPart part{&weights, {}};
  for (const ActivationPath path : {ActivationPath::float32, ActivationPath::int8}) {
    const PackedLinear linear(std::span(&part, 1), weights.columns, path);
    CHECK(linear.held_bytes() == 64 * (512 / 2 + 4 * 2 + 4 / 2));
  }
}

TEST_CASE("codes and scales that are not finite are invalid") {
  GroupedWeights weights = random_groups(CodeKind::float8, ScaleKind::float32, {});
  CHECK_NOTHROW(require_finite(weights, "here"));
  weights.codes[5] = std::byte{0x7F};
  CHECK_THROWS_AS(require_finite(weights, "here"), Error);
  GroupedWeights scaled = random_groups(CodeKind::nibble, ScaleKind::float32, {});
  const float infinite = HUGE_VALF;
  std::memcpy(scaled.scales.values.data(), &infinite, sizeof infinite);
  CHECK_THROWS_AS(require_finite(scaled, "here"), Error);
}

TEST_CASE("floats of eight bits have the values of the published table") {
  // arXiv 2209.05433, table 1: largest 448, smallest normal 2^-6, subnormals 2^-9 to 0.875·2^-6.
  CHECK(float8_to_float(0x7E) == 448);
  CHECK(float8_to_float(0x08) == 0x1p-6F);
  CHECK(float8_to_float(0x01) == 0x1p-9F);
  CHECK(float8_to_float(0x87) == -0.875F * 0x1p-6F);
  CHECK(std::isnan(float8_to_float(0xFF)));
}
