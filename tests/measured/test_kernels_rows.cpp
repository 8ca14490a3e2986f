// Element-wise functions and norms against double precision.
#include <doctest/doctest.h>

#include <array>
#include <functional>

#include "elementwise.h"
#include "kernel_data.h"
#include "normalize.h"
#include "vector_math.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

using Exact = std::function<double(double)>;

/// Largest relative error of a vector function over [low, high].
double relative_error(const std::function<simd::Floats(simd::Floats)>& f, const Exact& exact,
                      double low, double high) {
  constexpr int kPoints = 200000;
  double largest = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / kPoints);
    const double expected = exact(static_cast<double>(x));
    const auto actual = static_cast<double>(f(simd::broadcast(x))[0]);
    const double error = expected == actual ? 0 : std::abs(actual / expected - 1);
    largest = std::fmax(largest, std::isnan(error) ? HUGE_VAL : error);
  }
  return largest;
}

constexpr std::array kActivations{
    ActivationKind::relu,       ActivationKind::gelu,     ActivationKind::gelu_tanh,
    ActivationKind::gelu_new,   ActivationKind::silu,     ActivationKind::tanh,
    ActivationKind::sigmoid,    ActivationKind::identity, ActivationKind::relu_squared,
    ActivationKind::quick_gelu, ActivationKind::softplus};

double exact_activation(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::identity:
      return x;
    case ActivationKind::relu:
      return std::fmax(x, 0.0);
    case ActivationKind::relu_squared:
      return std::fmax(x, 0.0) * std::fmax(x, 0.0);
    case ActivationKind::gelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case ActivationKind::gelu_tanh:
    case ActivationKind::gelu_new:
      return x / 2 *
             (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
    case ActivationKind::quick_gelu:
      return x / (1 + std::exp(-1.702 * x));
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::softplus:
      return std::log1p(std::exp(x));
    case ActivationKind::clamped_swiglu:
    case ActivationKind::clamped_silu:  // functions of two values
    case ActivationKind::xielu:         // below
      break;
  }
  return 0;
}

struct NormCase {
  std::int64_t rows;
  std::int64_t width;
  std::vector<float> weight = random_floats(width, 1);
  std::vector<float> bias = random_floats(width, 2);
  std::vector<float> x = random_floats(rows * width, 3, 4.0F);
  std::vector<float> r = random_floats(rows * width, 4);

  [[nodiscard]] NormArguments arguments(bool with_bias) const {
    return {rows, width, weight.data(), with_bias ? bias.data() : nullptr, 1e-5F};
  }
};

enum class Centre { none, mean };

std::vector<double> exact_norm(const NormCase& c, const std::vector<float>& x, Centre centre,
                               bool with_bias) {
  const auto width = static_cast<std::size_t>(c.width);
  std::vector<double> out = widened(x);
  for (std::size_t row = 0; row < out.size(); row += width) {
    double mean = 0;
    for (std::size_t i = 0; i < width; ++i) mean += out[row + i] / static_cast<double>(width);
    if (centre == Centre::none) mean = 0;
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += std::pow(out[row + i] - mean, 2);
    const double factor =
        1 / std::sqrt(squares / static_cast<double>(width) + static_cast<double>(1e-5F));
    for (std::size_t i = 0; i < width; ++i) {
      out[row + i] = (out[row + i] - mean) * factor * static_cast<double>(c.weight[i]) +
                     (with_bias ? static_cast<double>(c.bias[i]) : 0.0);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("vector math is accurate to a few units in the last place") {
  const auto exp = [](double x) { return std::exp(x); };
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto erf = [](double x) { return std::erf(x); };
  CHECK(relative_error([](simd::Floats x) { return simd::exp(x); }, exp, -87, 88) < 2.5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::tanh(x); }, tanh, -20, 20) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::tanh(x); }, tanh, -0.01, 0.01) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::erf(x); }, erf, -20, 20) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::erf(x); }, erf, -0.01, 0.01) < 5e-7);
  const auto expm1 = [](double x) { return std::expm1(x); };
  const auto log = [](double x) { return std::log(x); };
  const auto log1p = [](double x) { return std::log1p(x); };
  const auto softplus = [](double x) { return std::log1p(std::exp(x)); };
  CHECK(relative_error([](simd::Floats x) { return simd::expm1(x); }, expm1, -80, 80) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::expm1(x); }, expm1, -0.5, 0.5) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::expm1(x); }, expm1, -1e-6, 1e-6) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::log(x); }, log, 1.5, 1e6) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::log(x); }, log, 1e-6, 0.7) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::log1p(x); }, log1p, 0, 1e6) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::log1p(x); }, log1p, 0, 1e-3) < 5e-7);
  CHECK(relative_error([](simd::Floats x) { return simd::softplus(x); }, softplus, -80, 80) < 5e-7);
}

TEST_CASE(
    "vector exp returns zero for very negative arguments and minus infinity, and propagates NaN") {
  CHECK(simd::exp(simd::broadcast(-1e30F))[0] == 0.0F);
  CHECK(simd::exp(simd::broadcast(-HUGE_VALF))[0] == 0.0F);
  CHECK(std::isnan(simd::exp(simd::broadcast(NAN))[0]));
  CHECK(std::isnan(simd::tanh(simd::broadcast(NAN))[0]));
  CHECK(std::isnan(simd::erf(simd::broadcast(NAN))[0]));
  CHECK(std::isnan(simd::relu(simd::broadcast(NAN))[0]));
}

TEST_CASE("activations equal their definitions for any number of elements") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const std::int64_t count : {1, 3, 17, 33, 64, 100, 40003}) {
      for (const ActivationKind kind : kActivations) {
        std::vector<float> x = random_floats(count, 1, 12.0F);
        std::vector<double> expected = widened(x);
        for (double& value : expected) value = exact_activation(kind, value);
        activate(kind, x.data(), count);
        CAPTURE(static_cast<int>(kind));
        CHECK(largest_error(x, expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("a gated activation reads the gate from the first half of a row") {
  for (const ActivationKind kind : kActivations) {
    for (const std::int64_t width : {1, 3, 17, 64, 2000}) {
      constexpr std::int64_t kRows = 9;
      const std::vector<float> x = random_floats(2 * kRows * width, 1, 5.0F);
      std::vector<float> out(static_cast<std::size_t>(kRows * width));
      std::vector<double> expected;
      for (std::int64_t i = 0; i < kRows * width; ++i) {
        const auto gate = static_cast<std::size_t>(i / width * 2 * width + i % width);
        expected.push_back(exact_activation(kind, static_cast<double>(x[gate])) *
                           static_cast<double>(x[gate + static_cast<std::size_t>(width)]));
      }
      activate_gated(kind, x.data(), out.data(), kRows, width);
      CHECK(largest_error(out, expected) < 4e-6);
    }
  }
}

TEST_CASE("DeepSeek-V4's activation clamps the gate from above and the rest on both sides") {
  const std::vector<float> row{-20, 0.5F, 30, 3, 25, -40, 12, -2};  // 4 gates, then 4 others
  std::vector<float> out(4);
  activate_gated(ActivationKind::clamped_silu, row.data(), out.data(), 1, 4);
  const std::array<double, 4> other{10, -10, 10, -2};
  for (std::size_t i = 0; i < 4; ++i) {
    const double gate = std::fmin(row[i], 10.0);
    const double expected = exact_activation(ActivationKind::silu, gate) * other[i];
    CHECK(static_cast<double>(out[i]) == doctest::Approx(expected).epsilon(1e-5));
  }
}

TEST_CASE("a limit clamps activated gates from above and the rest on both sides") {
  constexpr double kLimit = 2;
  const std::vector<float> row{-20, 0.5F, 30, 3, 1.5F, -40, 12, -2};  // 4 gates, then 4 others
  std::vector<float> out(4);
  activate_limited_gates(ActivationKind::silu, kLimit, row.data(), out.data(), 1, 4);
  const std::array<double, 4> other{1.5, -2, 2, -2};
  for (std::size_t i = 0; i < 4; ++i) {
    const double gate = exact_activation(ActivationKind::silu, static_cast<double>(row[i]));
    CHECK(static_cast<double>(out[i]) ==
          doctest::Approx(std::fmin(gate, kLimit) * other[i]).epsilon(1e-5));
  }
}

TEST_CASE("adding a residual and scaling modify every element once") {
  for (const std::int64_t count : {1, 17, 100, 40003}) {
    std::vector<float> x = random_floats(count, 1);
    const std::vector<float> r = random_floats(count, 2);
    std::vector<float> expected = x;
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = (x[i] + r[i]) * 3.0F;
    add_residual(x.data(), r.data(), count);
    scale(x.data(), 3.0F, count);
    CHECK(x == expected);
  }
}

TEST_CASE("norms equal their definitions, in place or not, with or without a bias") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const std::int64_t width : {1, 3, 17, 33, 64, 100, 768}) {
      for (const bool with_bias : {false, true}) {
        const NormCase c{33, width};
        const NormArguments norm = c.arguments(with_bias);
        std::vector<float> out(c.x.size());
        layer_norm(norm, c.x.data(), out.data());
        CHECK(largest_error(out, exact_norm(c, c.x, Centre::mean, with_bias)) < 2e-6);
        std::vector<float> x = c.x;
        rms_norm(norm, x.data(), x.data());
        CHECK(largest_error(x, exact_norm(c, c.x, Centre::none, with_bias)) < 2e-6);
      }
    }
  }
}

TEST_CASE("a norm fused with a residual writes the sum to x and its norm to out") {
  const NormCase c{7, 100};
  const NormArguments norm = c.arguments(true);
  std::vector<float> sum = c.x;
  add_residual(sum.data(), c.r.data(), c.rows * c.width);
  for (const Centre centre : {Centre::none, Centre::mean}) {
    const auto fused = centre == Centre::mean ? add_layer_norm : add_rms_norm;
    std::vector<float> x = c.x;
    std::vector<float> out(x.size());
    fused(norm, x.data(), c.r.data(), out.data());
    CHECK(x == sum);
    CHECK(largest_error(out, exact_norm(c, sum, centre, true)) < 2e-6);
    x = c.x;
    fused(norm, x.data(), c.r.data(), x.data());
    CHECK(x == out);
  }
}

TEST_CASE("a layer norm of large, nearly equal values stays accurate") {
  NormCase c{4, 768};
  for (float& value : c.x) value = 1000.0F + value;
  std::vector<float> out(c.x.size());
  layer_norm(c.arguments(false), c.x.data(), out.data());
  // The mean itself is exact to one unit in the last place of 1000.
  CHECK(largest_error(out, exact_norm(c, c.x, Centre::mean, false)) < 5e-5);
}

TEST_CASE("xIELU is a parabola above 0 and an exponential below") {
  // arXiv 2411.13010, eq. 13, with α = softplus of the trained constants.
  const XieluConstants constants{0.3F, -0.7F};
  const double positive = std::log1p(std::exp(static_cast<double>(constants.positive)));
  const double negative = 0.5 + std::log1p(std::exp(static_cast<double>(constants.negative)));
  std::vector<float> x = random_floats(1000, 1, 4.0F);
  std::vector<double> expected;
  for (const float value : x) {
    const auto v = static_cast<double>(value);
    expected.push_back(v > 0 ? positive * v * v + 0.5 * v
                             : negative * (std::expm1(v) - v) + 0.5 * v);
  }
  xielu(constants, x.data(), std::ssize(x));
  CHECK(largest_error(x, expected) < 1e-5);
}

TEST_CASE("rows are scaled by one vector") {
  const std::vector<float> factors = random_floats(37, 1);
  std::vector<float> x = random_floats(5 * 37, 2);
  std::vector<double> expected = widened(x);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] *= static_cast<double>(factors[i % factors.size()]);
  }
  scale_rows(x.data(), factors.data(), 5, 37);
  CHECK(largest_error(x, expected) < 1e-6);
}
