// Linear layers with weights in ggml's blocks, against a plain loop in double precision over the
// values that the checkpoint reader decodes.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <numeric>

#include "gemm.h"
#include "ggml_values.h"
#include "headroom/error.h"
#include "kernel_data.h"
#include "random_blocks.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;
using checkpoint::GgmlType;

namespace {

constexpr std::array kTypes{GgmlType::q8_0, GgmlType::q4_0, GgmlType::q4_1,   GgmlType::q5_0,
                            GgmlType::q5_1, GgmlType::q2_k, GgmlType::q3_k,   GgmlType::q4_k,
                            GgmlType::q5_k, GgmlType::q6_k, GgmlType::iq4_nl, GgmlType::iq4_xs,
                            GgmlType::mxfp4};

/// Weights [out, in] in random blocks, and their values.
struct BlockWeights {
  std::int64_t in;
  std::int64_t out;
  StoredBlocks stored;
  std::vector<float> values;

  BlockWeights(GgmlType type, std::int64_t outputs, std::int64_t inputs, std::uint64_t seed = 5)
      : in(inputs), out(outputs), values(static_cast<std::size_t>(inputs * outputs)) {
    SplitMix64 numbers(seed);
    stored = random_block_values(type, in * out, 0.1F, numbers);
    checkpoint::dequantise(type, stored.bytes, values, "test");
  }

  [[nodiscard]] BlockPart part(std::span<const float> bias = {}) const {
    return {stored.type, stored.bytes, bias};
  }
  [[nodiscard]] double weight(std::int64_t column, std::int64_t i) const {
    return static_cast<double>(values[static_cast<std::size_t>(column * in + i)]);
  }
};

std::vector<float> product(const BlockWeights& weights, ActivationPath path,
                           const std::vector<float>& x) {
  const BlockPart part = weights.part();
  PackedLinear linear(std::span(&part, 1), weights.in, path);
  const std::int64_t rows = std::ssize(x) / weights.in;
  std::vector<float> y(static_cast<std::size_t>(rows * weights.out));
  linear.prepare(rows);
  CHECK(linear.run(x.data(), y.data(), rows) == 2 * rows * weights.in * weights.out);
  return y;
}

/// Exact value and error bound of one element of y.
struct Expected {
  double value = 0;
  double rounding = 0;      ///< of float32, a unit in the last place per term
  double quantisation = 0;  ///< half a step of each block's activations times its |weights|
};

Expected expected_at(const BlockWeights& weights, const float* x, std::int64_t column) {
  Expected expected;
  double magnitude = 0;
  for (std::int64_t block = 0; block < weights.in; block += 32) {
    double largest = 0;
    double absolute_weights = 0;
    for (std::int64_t i = block; i < block + 32; ++i) {
      const auto value = static_cast<double>(x[i]);
      const double weight = weights.weight(column, i);
      expected.value += value * weight;
      magnitude += std::abs(value * weight);
      absolute_weights += std::abs(weight);
      largest = std::max(largest, std::abs(value));
    }
    expected.quantisation += largest / 254 * absolute_weights;
  }
  expected.rounding = static_cast<double>(weights.in) * 0x1p-24 * magnitude;
  return expected;
}

/// Largest error in units of the bound: of rounding, and with int8 activations of quantisation. A
/// factor of 1.01 covers the rounding of the quantised products, whose terms exceed the weights.
double worst_share(const BlockWeights& weights, ActivationPath path, const std::vector<float>& x) {
  const std::vector<float> y = product(weights, path, x);
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / weights.out;
    const Expected expected = expected_at(weights, x.data() + row * weights.in,
                                          static_cast<std::int64_t>(i) % weights.out);
    const double bound =
        path == ActivationPath::int8 ? 1.01 * expected.quantisation : expected.rounding;
    const double error = std::abs(static_cast<double>(y[i]) - expected.value);
    if (!std::isfinite(error)) return HUGE_VAL;
    worst = std::max(worst, error / bound);
  }
  return worst;
}

/// Outputs that fill several tiles of each of two threads, and a part of one.
constexpr std::int64_t kOutputs = 149;

/// Blocks whose bytes are all `code`, but for float16 of 1 at `ones`.
struct FilledBlocks {
  GgmlType type;
  std::vector<std::size_t> ones;

  [[nodiscard]] BlockWeights with(std::byte code) const {
    BlockWeights weights(type, kOutputs, 256);
    auto& bytes = weights.stored.bytes;
    std::ranges::fill(bytes, code);
    const auto block = static_cast<std::size_t>(checkpoint::info(type).block_bytes);
    for (std::size_t first = 0; first < bytes.size(); first += block) {
      for (const std::size_t one : ones) {
        bytes[first + one] = std::byte{0};
        bytes[first + one + 1] = std::byte{0x3c};
      }
    }
    checkpoint::dequantise(type, bytes, weights.values, "test");
    return weights;
  }
};

std::vector<float> decoded_row(const PackedLinear& linear, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(linear.in_features()));
  REQUIRE(linear.read_row(row, values.data()));
  return values;
}

}  // namespace

TEST_CASE("rows of blocks decode to the values that the checkpoint reader gives") {
  for (const GgmlType type : kTypes) {
    CAPTURE(checkpoint::info(type).name);
    const BlockWeights weights(type, 37, 512);
    const BlockPart part = weights.part();
    const PackedLinear linear(std::span(&part, 1), weights.in, ActivationPath::int8);
    for (std::int64_t row = 0; row < weights.out; ++row) {
      const auto first = weights.values.begin() + row * weights.in;
      CHECK(decoded_row(linear, row) == std::vector<float>(first, first + weights.in));
    }
  }
}

TEST_CASE("blocks of MXFP4 with the largest exponents are finite where their values are") {
  for (const unsigned exponent : {252U, 253U, 254U}) {
    CAPTURE(exponent);
    BlockWeights weights(GgmlType::mxfp4, 16, 64);
    // Codes of 0, 0.5, 1 and 1.5, and their negatives: 1.5 · 2^127 is finite.
    constexpr std::size_t kBlock = 17;
    for (std::size_t i = 0; i < weights.stored.bytes.size(); ++i) {
      std::byte& byte = weights.stored.bytes[i];
      byte = i % kBlock == 0 ? static_cast<std::byte>(exponent) : byte & std::byte{0xbb};
    }
    checkpoint::dequantise(GgmlType::mxfp4, weights.stored.bytes, weights.values, "test");
    const BlockPart part = weights.part();
    const PackedLinear linear(std::span(&part, 1), weights.in, ActivationPath::int8);
    CHECK(decoded_row(linear, 0) ==
          std::vector<float>(weights.values.begin(), weights.values.begin() + weights.in));
    for (const ActivationPath path : {ActivationPath::float32, ActivationPath::int8}) {
      std::vector<float> x = random_floats(weights.in, 3);
      for (float& value : x) value *= 0x1p-40F;
      CHECK(worst_share(weights, path, x) <= 1);
    }
  }
}

TEST_CASE("random blocks have the deviation that is asked for and a mean near zero") {
  for (const GgmlType type : kTypes) {
    CAPTURE(checkpoint::info(type).name);
    const std::vector<float> values = BlockWeights(type, 64, 1024, 11).values;
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    const auto count = static_cast<double>(values.size());
    const double deviation = std::sqrt(squares / count);
    CHECK(deviation > 0.1 / 1.5);
    CHECK(deviation < 0.1 * 1.5);
    // Codes without a minimum have one value more below zero than above.
    CHECK(std::abs(sum / count) < 0.35 * deviation);
  }
}

TEST_CASE("products with float32 activations equal the matrix product within rounding") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const GgmlType type : kTypes) {
      CAPTURE(checkpoint::info(type).name);
      const BlockWeights weights(type, kOutputs, 512);
      for (const std::int64_t rows : {1, 3, 4, 5, 8, 14}) {
        CAPTURE(rows);
        const auto x = random_floats(rows * weights.in, 2);
        CHECK(worst_share(weights, ActivationPath::float32, x) < 1);
      }
    }
  }
}

TEST_CASE("products with int8 activations differ by no more than half a step per activation") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const GgmlType type : kTypes) {
      CAPTURE(checkpoint::info(type).name);
      const BlockWeights weights(type, kOutputs, 512);
      for (const std::int64_t rows : {1, 3, 4, 5, 8, 14}) {
        CAPTURE(rows);
        const auto x = random_floats(rows * weights.in, 2, 3.0F);
        CHECK(worst_share(weights, ActivationPath::int8, x) < 1);
      }
    }
  }
}

TEST_CASE("activations that int8 holds exactly give exact products within rounding") {
  const BlockWeights weights(GgmlType::q8_0, 33, 256);
  std::vector<float> x(static_cast<std::size_t>(weights.in));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 255) - 127.0F;
  for (std::size_t block = 0; block < x.size(); block += 32) x[block] = 127.0F;
  for (std::int64_t column = 0; column < weights.out; ++column) {
    const double exact = expected_at(weights, x.data(), column).value;
    const auto y = product(weights, ActivationPath::int8, x);
    const double error = std::abs(static_cast<double>(y[static_cast<std::size_t>(column)]) - exact);
    CHECK(error < 1e-3);  // of sums of 256 products up to 127 · 0.17
  }
}

TEST_CASE("codes and activations at the ends of their ranges give exact products") {
  const std::vector<FilledBlocks> types{{GgmlType::q8_0, {0}},    {GgmlType::q5_1, {0, 2}},
                                        {GgmlType::q4_k, {0, 2}}, {GgmlType::q6_k, {208}},
                                        {GgmlType::iq4_nl, {0}},  {GgmlType::iq4_xs, {0}}};
  for (const FilledBlocks& blocks : types) {
    CAPTURE(checkpoint::info(blocks.type).name);
    for (const std::byte code :
         {std::byte{0x00}, std::byte{0x7f}, std::byte{0x80}, std::byte{0xff}}) {
      CAPTURE(static_cast<int>(code));
      const BlockWeights weights = blocks.with(code);
      for (const float end : {-127.0F, 127.0F}) {
        const std::vector<float> x(static_cast<std::size_t>(weights.in), end);
        const double exact = expected_at(weights, x.data(), 0).value;
        for (const float y : product(weights, ActivationPath::int8, x)) {
          CHECK(static_cast<double>(y) == doctest::Approx(exact).epsilon(1e-6));
        }
      }
    }
  }
}

TEST_CASE("many rows equal the rows one by one") {
  for (const ActivationPath path : {ActivationPath::float32, ActivationPath::int8}) {
    const BlockWeights weights(GgmlType::q4_k, kOutputs, 256);
    const auto x = random_floats(131 * weights.in, 9);
    const auto all = product(weights, path, x);
    for (const std::int64_t row : {0, 63, 64, 127, 130}) {
      const std::vector<float> one(x.begin() + row * weights.in,
                                   x.begin() + (row + 1) * weights.in);
      const auto first = all.begin() + row * weights.out;
      CHECK(product(weights, path, one) == std::vector<float>(first, first + weights.out));
    }
  }
}

TEST_CASE("parts of several types stack along the output, each with its bias or none") {
  const BlockWeights first(GgmlType::q4_k, 24, 256, 1);
  const BlockWeights second(GgmlType::q6_k, 19, 256, 2);
  const auto bias = random_floats(19, 3);
  const std::array parts{first.part(), second.part(bias)};
  PackedLinear linear(parts, 256, ActivationPath::float32);
  REQUIRE(linear.out_features() == 43);
  const auto x = random_floats(2 * 256, 4);
  std::vector<float> y(2 * 43);
  linear.prepare(2);
  (void)linear.run(x.data(), y.data(), 2);
  const auto one = product(first, ActivationPath::float32, x);
  const auto two = product(second, ActivationPath::float32, x);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t i = 0; i < 24; ++i) CHECK(y[row * 43 + i] == one[row * 24 + i]);
    for (std::size_t i = 0; i < 19; ++i) {
      CHECK(y[row * 43 + 24 + i] == two[row * 19 + i] + bias[i]);
    }
  }
  const auto row = second.values.begin() + 2 * 256;
  CHECK(decoded_row(linear, 26) == std::vector<float>(row, row + 256));
}

TEST_CASE("blocks are held in their own bytes, with zeros that fill the last tile") {
  const BlockWeights whole(GgmlType::q4_k, 64, 512);
  const BlockPart part = whole.part();
  const PackedLinear linear(std::span(&part, 1), whole.in, ActivationPath::int8);
  CHECK(linear.weight_bytes(1) == 64 * 512 / 256 * 144);
  CHECK(linear.held_bytes() == linear.weight_bytes(1));
  const BlockWeights odd(GgmlType::q4_k, 65, 512);
  const BlockPart odd_part = odd.part();
  const PackedLinear filled(std::span(&odd_part, 1), odd.in, ActivationPath::int8);
  CHECK(filled.weight_bytes(128) == 65 * 512 / 256 * 144);
  CHECK(filled.held_bytes() <= (64 + 16) * 512 / 256 * 144);
}

TEST_CASE("activations that are not finite do not become numbers in int8") {
  const BlockWeights weights(GgmlType::q4_0, 16, 64);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto x = random_floats(weights.in, 1);
    x[40] = bad;
    for (const float y : product(weights, ActivationPath::int8, x)) CHECK_FALSE(std::isfinite(y));
  }
  const std::vector<float> zeros(static_cast<std::size_t>(weights.in));
  for (const float y : product(weights, ActivationPath::int8, zeros)) CHECK(y == 0.0F);
}

TEST_CASE("a type without kernels, and rows that do not fill blocks, are internal errors") {
  const std::vector<std::byte> bytes(66);
  const BlockPart unknown{GgmlType::iq2_xxs, bytes, {}};
  CHECK_FALSE(has_block_kernels(GgmlType::iq2_xxs));
  CHECK_THROWS_AS(PackedLinear(std::span(&unknown, 1), 256, ActivationPath::int8), Error);
  const BlockPart partial{GgmlType::q8_0, bytes, {}};
  CHECK_THROWS_AS(PackedLinear(std::span(&partial, 1), 48, ActivationPath::int8), Error);
}
