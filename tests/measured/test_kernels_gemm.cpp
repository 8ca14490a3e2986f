// Linear layers against a double-precision loop.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <span>

#include "counting_scalar.h"
#include "gemm.h"
#include "headroom/error.h"
#include "kernel_data.h"
#include "parallel.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

/// TwoPartLayer of two parts, the second without a bias, and its operands.
struct TwoPartLayer {
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
  std::vector<float> weight = random_floats(in * out, 1);
  std::vector<float> bias = random_floats(out - out / 3, 2);
  std::vector<float> x = random_floats(rows * in, 3);
  std::vector<float> y = random_floats(rows * out, 4);

  [[nodiscard]] std::array<LinearPart, 2> parts() const {
    const auto first = bias.size() * static_cast<std::size_t>(in);
    const std::span<const float> all(weight);
    return {{{all.first(first), bias}, {all.subspan(first), {}}}};
  }
};

double exact_epilogue(Epilogue epilogue, double x, double before) {
  switch (epilogue) {
    case Epilogue::none:
      return x;
    case Epilogue::relu:
      return std::max(x, 0.0);
    case Epilogue::gelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Epilogue::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
    case Epilogue::silu:
      return x / (1 + std::exp(-x));
    case Epilogue::tanh:
      return std::tanh(x);
    case Epilogue::add_residual:
      return before + x;
  }
  return 0;
}

std::vector<double> exact_linear(const TwoPartLayer& layer, Epilogue epilogue) {
  std::vector<double> y;
  for (std::int64_t row = 0; row < layer.rows; ++row) {
    for (std::int64_t column = 0; column < layer.out; ++column) {
      const auto bias = static_cast<std::size_t>(column);
      CountingScalar sum = bias < layer.bias.size() ? static_cast<double>(layer.bias[bias]) : 0;
      for (std::int64_t i = 0; i < layer.in; ++i) {
        const float x = layer.x[static_cast<std::size_t>(row * layer.in + i)];
        const float weight = layer.weight[static_cast<std::size_t>(column * layer.in + i)];
        sum += CountingScalar(static_cast<double>(x)) * static_cast<double>(weight);
      }
      y.push_back(exact_epilogue(epilogue, sum.value(), static_cast<double>(layer.y[y.size()])));
    }
  }
  return y;
}

/// Error of one run against the exact_linear, relative to the number of terms per sum.
double error_of(const TwoPartLayer& layer, const LinearOptions& options) {
  PackedLinear linear(layer.parts(), layer.in, options);
  linear.prepare(layer.rows);
  std::vector<float> y = layer.y;
  const std::int64_t flops = linear.run(layer.x.data(), y.data(), layer.rows);
  (void)CountingScalar::take_operations();
  const std::vector<double> expected = exact_linear(layer, options.epilogue);
  CHECK(flops == CountingScalar::take_operations());
  return largest_error(y, expected, std::sqrt(static_cast<double>(layer.in)));
}

/// Rounds to 8 significant bits, ties to even.
void round_to_8_bits(std::vector<float>& values) {
  for (float& value : values) {
    if (value == 0.0F) continue;
    const int exponent = std::ilogb(value);
    value = std::ldexp(std::nearbyint(std::ldexp(value, 7 - exponent)), exponent - 7);
  }
}

constexpr std::array kBackends{Backend::eigen, Backend::onednn};
constexpr std::array kEpilogues{Epilogue::none,        Epilogue::relu, Epilogue::gelu,
                                Epilogue::gelu_tanh,   Epilogue::silu, Epilogue::tanh,
                                Epilogue::add_residual};
constexpr std::array kLayouts{RowRange::few, RowRange::many, RowRange::both};

}  // namespace

TEST_CASE("a linear layer equals the matrix product for every backend, layout and thread count") {
  for (const int threads : {1, 2, 5}) {
    const Threads scope(threads);
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 130}) {
      for (const Backend backend : kBackends) {
        if (!is_available(backend)) continue;
        for (const RowRange layout : kLayouts) {
          CAPTURE(rows);
          CHECK(error_of({rows, 100, 77}, {.backend = backend, .rows = layout}) < 1e-6);
          CHECK(error_of({rows, 17, 3}, {.backend = backend, .rows = layout}) < 1e-6);
          CHECK(error_of({rows, 3, 400}, {.backend = backend, .rows = layout}) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("a linear layer applies its epilogue after the bias") {
  for (const Backend backend : kBackends) {
    if (!is_available(backend)) continue;
    for (const Epilogue epilogue : kEpilogues) {
      for (const std::int64_t rows : {1, 5, 40}) {
        CAPTURE(static_cast<int>(epilogue));
        CAPTURE(rows);
        CHECK(error_of({rows, 64, 65}, {.backend = backend, .epilogue = epilogue}) < 2e-6);
      }
    }
  }
}

TEST_CASE("a linear layer in bfloat16 equals the matrix product with rounded weights") {
  struct Size {
    std::int64_t in;
    std::int64_t out;
  };
  // Odd inputs, outputs that fill no vector, more inputs than a panel's block, and some panels.
  constexpr std::array kSizes{Size{50, 19}, Size{17, 1}, Size{9, 300}, Size{4500, 40}};
  for (const int threads : {1, 2, 5}) {
    const Threads scope(threads);
    for (const Size size : kSizes) {
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 20, 340}) {
        if (rows * size.in > 100'000) continue;
        CAPTURE(rows);
        CAPTURE(size.in);
        TwoPartLayer layer{rows, size.in, size.out};
        // Nine significant bits: half of the values are ties, which go to the even neighbour.
        for (float& weight : layer.weight) weight = std::round(weight * 511.0F) / 256.0F;
        PackedLinear linear(layer.parts(), layer.in, {.storage = HeldType::bfloat16});
        std::vector<float> y(layer.y.size());
        linear.run(layer.x.data(), y.data(), rows);
        round_to_8_bits(layer.weight);
        const double terms = std::sqrt(static_cast<double>(size.in));
        // Each output is one sum, whose rounding errors grow with its number of terms.
        CHECK(largest_error(y, exact_linear(layer, Epilogue::none), terms) < 3e-6);
      }
    }
  }
}

TEST_CASE("a linear layer in bfloat16 applies its epilogue after the bias and returns its rows") {
  for (const Epilogue epilogue : kEpilogues) {
    for (const std::int64_t rows : {1, 5, 40}) {
      CAPTURE(static_cast<int>(epilogue));
      TwoPartLayer layer{rows, 2100, 205};  // three panels and a part of one, or more
      PackedLinear linear(layer.parts(), layer.in,
                          {.epilogue = epilogue, .storage = HeldType::bfloat16});
      std::vector<float> y = layer.y;
      linear.run(layer.x.data(), y.data(), rows);
      round_to_8_bits(layer.weight);
      CHECK(largest_error(y, exact_linear(layer, epilogue), 46.0) < 2e-6);
      std::vector<float> row(2100);
      CHECK(linear.read_row(70, row.data()));
      CHECK(std::ranges::equal(row, std::span(layer.weight).subspan(70 * 2100, 2100)));
    }
  }
}

TEST_CASE("bfloat16 activations are rounded before the products, for few rows and many") {
  if (!has_bfloat16_products(Backend::onednn)) {
    MESSAGE("this processor has no bfloat16 products");
    return;
  }
  for (const std::int64_t rows : {1, 8, 9, 33, 130}) {
    for (const RowRange layout : kLayouts) {
      for (const Epilogue epilogue : {Epilogue::none, Epilogue::silu, Epilogue::add_residual}) {
        CAPTURE(rows);
        TwoPartLayer layer{rows, 100, 77};
        const LinearOptions options{.backend = Backend::onednn,
                                    .epilogue = epilogue,
                                    .rows = layout,
                                    .storage = HeldType::bfloat16,
                                    .activations = ActivationPath::bfloat16};
        PackedLinear linear(layer.parts(), layer.in, options);
        linear.prepare(rows);
        std::vector<float> y = layer.y;
        linear.run(layer.x.data(), y.data(), rows);
        round_to_8_bits(layer.weight);
        const std::vector<double> wide = exact_linear(layer, epilogue);
        round_to_8_bits(layer.x);
        CHECK(largest_error(y, exact_linear(layer, epilogue), 10.0) < 1e-6);
        CHECK(largest_error(y, wide, 10.0) > 1e-5);  // of activations that are not rounded
      }
    }
  }
}

TEST_CASE("a bfloat16 layer holds two bytes of each weight, in one layout for all rows") {
  const std::vector<float> weight = random_floats(std::int64_t{256} * 512, 1);
  const LinearPart part{weight, {}};
  for (const RowRange layout : kLayouts) {
    for (const ActivationPath path : {ActivationPath::float32, ActivationPath::bfloat16}) {
      const bool narrows = path == ActivationPath::bfloat16;
      const Backend backend = narrows ? Backend::onednn : Backend::eigen;
      if (narrows && !has_bfloat16_products(backend)) continue;
      const PackedLinear linear(
          std::span(&part, 1), 256,
          {.backend = backend, .rows = layout, .storage = HeldType::bfloat16, .activations = path});
      CHECK(linear.held_bytes() == 2 * 256 * 512);
      CHECK(linear.weight_bytes(1) == 2 * 256 * 512);
      CHECK(linear.weight_bytes(64) == 2 * 256 * 512);
    }
  }
}

TEST_CASE("bfloat16 activations are refused by a backend without products of them") {
  CHECK_FALSE(has_bfloat16_products(Backend::eigen));
  const std::vector<float> weight(12);
  const LinearPart part{weight, {}};
  CHECK_THROWS_AS(
      PackedLinear(std::span(&part, 1), 3,
                   {.storage = HeldType::bfloat16, .activations = ActivationPath::bfloat16}),
      Error);
}

TEST_CASE("a linear layer works when the number of rows or threads changes") {
  for (const Backend backend : kBackends) {
    if (!is_available(backend)) continue;
    const TwoPartLayer layer{64, 48, 32};
    const std::vector<double> expected = exact_linear(layer, Epilogue::none);
    PackedLinear linear(layer.parts(), layer.in, {.backend = backend, .typical_rows = 16});
    for (const int threads : {2, 1, 5, 2}) {
      const Threads scope(threads);
      for (const std::int64_t rows : {64, 1, 17, 64}) {
        std::vector<float> y(static_cast<std::size_t>(rows * layer.out));
        linear.run(layer.x.data(), y.data(), rows);
        const std::vector<double> head(expected.begin(), expected.begin() + rows * layer.out);
        CHECK(largest_error(y, head, 7.0) < 1e-6);
      }
    }
  }
}

TEST_CASE("shares of 48 columns leave threads idle where there are few of them") {
  CHECK(is_balanced(768, 48, 2));         // 8 shares each
  CHECK(is_balanced(768, 48, 16));        // one each
  CHECK_FALSE(is_balanced(144, 48, 2));   // 2 and 1
  CHECK_FALSE(is_balanced(768, 48, 12));  // 2 or 1 each
  CHECK_FALSE(is_balanced(4096, 48, 128));
  CHECK(is_balanced(4096, 16, 128));  // 2 each
}

TEST_CASE("a linear layer rejects parts of mismatched sizes") {
  const std::vector<float> weight(12);
  const std::vector<float> bias(5);
  const std::array parts{LinearPart{weight, bias}};
  CHECK_THROWS_AS(PackedLinear(parts, 3, {}), Error);
  CHECK_THROWS_AS(PackedLinear(parts, 5, {}), Error);
}

TEST_CASE("a backend that the build lacks is a missing resource") {
  if (is_available(Backend::onednn)) return;
  const std::vector<float> weight(12);
  const std::array parts{LinearPart{weight, {}}};
  CHECK_THROWS_AS(PackedLinear(parts, 3, {.backend = Backend::onednn}), Error);
}
