// Kernels of encoders against their definitions: buckets of relative positions, interpolated
// position tables, pooling, grouped convolutions and their weights, norms over positions.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernel_data.h"
#include "kernels/convolution.h"
#include "kernels/disentangled.h"
#include "kernels/normalize.h"
#include "kernels/pooling.h"
#include "kernels/position_table.h"

using namespace headroom;
using namespace headroom::measured;
using headroom::measured::testing::random_floats;

// arXiv 2006.03654, equation 3: δ(i, j) = i - j + k between -k and k, else 0 or 2k - 1.
TEST_CASE("without buckets, relative positions are clamped distances") {
  DisentangledSpec spec;
  spec.num_positions = 8;
  const std::array<std::int64_t, 11> expected{0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7};
  for (std::int64_t distance = -5; distance <= 5; ++distance) {
    CHECK(position_row(spec, distance) == expected[static_cast<std::size_t>(distance + 5)]);
  }
}

// With 8 buckets up to distance 17, distances of at most 4 have a row each; beyond, a row is
// 4 + ceil(3·ln(distance / 4) / ln(16 / 4)): 5 to 6 -> 5, 7 to 10 -> 6, 11 to 16 -> 7.
TEST_CASE("larger distances share rows on a logarithmic scale") {
  DisentangledSpec spec;
  spec.num_positions = 16;
  spec.num_buckets = 8;
  spec.max_distance = 17;
  const std::array<std::int64_t, 17> expected{0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7};
  for (std::int64_t distance = 0; distance <= 16; ++distance) {
    const std::int64_t bucket = expected[static_cast<std::size_t>(distance)];
    CAPTURE(distance);
    CHECK(position_row(spec, distance) == 8 + bucket);
    CHECK(position_row(spec, -distance) == 8 - bucket);
  }
}

TEST_CASE("a position table of the image's own size is kept") {
  const std::array<float, 5> table{9, 1, 2, 3, 4};
  const auto kept =
      interpolate_positions({2, 2, 1, 1}, table.data(), 2, 2, PositionInterpolation::bicubic);
  CHECK(std::vector<float>(table.begin(), table.end()) == kept);
}

// The four weights of a cubic convolution sum to 1. Golden run:
// tests/data/golden/models/dinov2_interp.
TEST_CASE("a constant table stays constant, and the prefix is kept") {
  const std::array<float, 5> table{9, 2, 2, 2, 2};
  const auto larger =
      interpolate_positions({2, 2, 1, 1}, table.data(), 3, 5, PositionInterpolation::bicubic);
  REQUIRE(larger.size() == 16);
  CHECK(larger.front() == 9);
  for (std::size_t i = 1; i < larger.size(); ++i) CHECK(larger[i] == doctest::Approx(2.0));
}

// torch 2.15: interpolate(x, size=(1, n), align_corners=False, antialias=True) of 0, 1, 4, 9.
TEST_CASE("with antialiasing, a table averages where it shrinks as torch's interpolation does") {
  const std::array<float, 4> table{0, 1, 4, 9};
  const auto resized = [&](PositionInterpolation kind, std::int64_t columns) {
    return interpolate_positions({1, 4, 0, 1}, table.data(), 1, columns, kind);
  };
  const auto check = [](const std::vector<float>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
  };
  constexpr auto kLinear = PositionInterpolation::linear_antialiased;
  constexpr auto kCubic = PositionInterpolation::bicubic_antialiased;
  check(resized(kLinear, 2), {1, 5.7142859});
  check(resized(kLinear, 3), {0.3, 2.5, 7.5});
  check(resized(kLinear, 7), {0, 0.3571429, 0.9285715, 2.5, 4.3571439, 7.2142868, 9});
  check(resized(kCubic, 2), {0.6033058, 6.0826445});
  check(resized(kCubic, 3), {0.0755149, 2.3591952, 7.9359269});
  check(resized(kCubic, 7),
        {-0.0793271, 0.1875106, 0.8625708, 2.25, 4.3184886, 7.6042767, 9.3966351});
}

// torch 2.15: interpolate(x, size=(1, n), mode="bilinear", align_corners=False) of 0, 1, 4, 9.
TEST_CASE("between the centres of cells, a table is interpolated as torch does") {
  const std::array<float, 4> table{0, 1, 4, 9};
  const std::vector<std::vector<double>> expected{
      {0.5, 6.5},
      {1.0 / 6, 2.5, 8.1666667},
      {0, 0.3571429, 0.9285715, 2.5, 4.3571439, 7.2142868, 9}};
  for (const std::vector<double>& row : expected) {
    const auto got = interpolate_positions({1, 4, 0, 1}, table.data(), 1, std::ssize(row),
                                           PositionInterpolation::linear_centres);
    REQUIRE(got.size() == row.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(static_cast<double>(got[i]) == doctest::Approx(row[i]).epsilon(1e-5));
    }
  }
}

// transformers 5.24, get_vision_interpolation_indices_and_weights with padding "zeros", of 2 × 4
// and 5 × 1 patches, whose sides Muse Glimmer's class swaps.
TEST_CASE("zeros around a table enter its interpolation, whose sides are swapped") {
  const std::array<float, 9> table{0, 1, 4, 9, 16, 25, 36, 49, 64};
  const auto check = [&](std::int64_t rows, std::int64_t columns,
                         const std::vector<double>& expected) {
    const auto got = interpolate_positions({3, 3, 0, 1}, table.data(), rows, columns,
                                           PositionInterpolation::linear_swapped);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(static_cast<double>(got[i]) == doctest::Approx(expected[i]).epsilon(1e-5));
    }
  };
  check(2, 4, {0.21875, 2.84375, 6.8125, 15.4375, 21.4375, 36.8125, 34.34375, 52.71875});
  check(5, 1, {7.2, 11.8, 16.0, 21.4, 20.0});
  check(3, 3, {0, 1, 4, 9, 16, 25, 36, 49, 64});
}

TEST_CASE("a mean leaves padding out, and follows the first token where both are wanted") {
  const std::array<float, 6> x{1, 10, 3, 30, 100, 1000};  // 3 tokens of 2 channels
  const std::array<std::uint8_t, 3> mask{1, 1, 0};
  PoolingArguments args{1, 3, 2, x.data()};
  std::array<float, 4> out{};
  pool_tokens(args, TokenPooling::first, out.data());
  CHECK(out[1] == 10);
  pool_tokens(args, TokenPooling::second, out.data());
  CHECK(out[0] == 3);
  args.prefix = 1;
  pool_tokens(args, TokenPooling::first_and_mean, out.data());
  CHECK(out == std::array<float, 4>{1, 10, 51.5, 515});
  pool_tokens(args, TokenPooling::mean, out.data());
  CHECK(out[0] == 51.5F);
  args.prefix = 0;
  args.mask = mask.data();
  pool_tokens(args, TokenPooling::mean, out.data());
  CHECK(out[0] == 2);
  CHECK(out[1] == 20);
}

// arXiv 1602.07868, equation 2, for every tap: the weight has the length that is stored apart.
TEST_CASE("each tap of a normalised weight has its length, and keeps its direction") {
  constexpr std::size_t kTaps = 3;
  const std::array<float, kTaps> lengths{2, -0.5F, 7};
  std::vector<float> weight = random_floats(20 * kTaps, 6);
  const std::vector<float> direction = weight;
  normalise_taps(kTaps, lengths.data(), weight);
  for (std::size_t tap = 0; tap < kTaps; ++tap) {
    double squares = 0;
    for (std::size_t i = tap; i < weight.size(); i += kTaps) {
      squares += std::pow(static_cast<double>(weight[i]), 2);
    }
    const auto length = static_cast<double>(lengths[tap]);
    CHECK(std::sqrt(squares) == doctest::Approx(std::abs(length)));
    const double first = static_cast<double>(weight[tap]) * static_cast<double>(direction[tap]);
    CHECK((first > 0) == (length > 0));
  }
}

TEST_CASE("outputs of a group read its channels at every tap") {
  ConvolutionArguments args;
  args.batch = 2;
  args.channels = 6;
  args.length = 4;
  args.kernel = 3;
  args.left_padding = 1;
  const auto x = random_floats(2 * 4 * 6, 7);
  std::vector<float> padded(static_cast<std::size_t>(2 * args.padded_length() * 6));
  pad_positions(args, x.data(), nullptr, padded.data());
  std::vector<float> gathered(2 * 4 * 2 * 3);
  gather_group(args, 2, 1, padded.data(), gathered.data());
  for (std::int64_t row = 0; row < 8; ++row) {
    for (std::int64_t channel = 0; channel < 2; ++channel) {
      for (std::int64_t tap = 0; tap < 3; ++tap) {
        const std::int64_t position = row % 4 + tap - 1;
        const bool inside = position >= 0 && position < 4;
        const std::int64_t at = (row / 4 * 4 + position) * 6 + 2 + channel;
        const float expected = inside ? x[static_cast<std::size_t>(at)] : 0;
        CHECK(gathered[static_cast<std::size_t>(row * 6 + channel * 3 + tap)] == expected);
      }
    }
  }
}

TEST_CASE("a norm over positions gives each channel mean 0 and variance 1 before its weight") {
  constexpr std::int64_t kLength = 50;
  constexpr std::int64_t kChannels = 3;
  const auto x = random_floats(2 * kLength * kChannels, 8, 5);
  const std::array<float, kChannels> weight{1, 2, 3};
  const std::array<float, kChannels> bias{10, 20, 30};
  NormArguments norm;
  norm.weight = weight.data();
  norm.bias = bias.data();
  std::vector<float> out(x.size());
  channel_norm({2, kLength, kChannels}, norm, x.data(), out.data());
  for (std::int64_t item = 0; item < 2; ++item) {
    for (std::int64_t channel = 0; channel < kChannels; ++channel) {
      double sum = 0;
      double squares = 0;
      for (std::int64_t i = 0; i < kLength; ++i) {
        const std::int64_t at = (item * kLength + i) * kChannels + channel;
        const auto value = static_cast<double>(out[static_cast<std::size_t>(at)]);
        sum += value;
        squares += value * value;
      }
      const auto index = static_cast<std::size_t>(channel);
      const double mean = sum / kLength;
      CHECK(mean == doctest::Approx(static_cast<double>(bias[index])));
      const double deviation = std::sqrt(squares / kLength - mean * mean);
      CHECK(deviation == doctest::Approx(static_cast<double>(weight[index])));
    }
  }
}
