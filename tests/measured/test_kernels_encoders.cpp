// Kernels of encoders against their definitions: buckets of relative positions, interpolated
// position tables, pooling.
#include <doctest/doctest.h>

#include <array>

#include "kernels/disentangled.h"
#include "kernels/pooling.h"
#include "kernels/position_table.h"

using namespace headroom;
using namespace headroom::measured;

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
  const auto kept = interpolate_positions({2, 2, 1, 1}, table.data(), 2, 2);
  CHECK(std::vector<float>(table.begin(), table.end()) == kept);
}

// The four weights of a cubic convolution sum to 1. Golden run:
// tests/data/golden/models/dinov2_interp.
TEST_CASE("a constant table stays constant, and the prefix is kept") {
  const std::array<float, 5> table{9, 2, 2, 2, 2};
  const auto larger = interpolate_positions({2, 2, 1, 1}, table.data(), 3, 5);
  REQUIRE(larger.size() == 16);
  CHECK(larger.front() == 9);
  for (std::size_t i = 1; i < larger.size(); ++i) CHECK(larger[i] == doctest::Approx(2.0));
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
  pool_tokens(args, TokenPooling::first_and_mean, out.data());
  CHECK(out == std::array<float, 4>{1, 10, 51.5, 515});
  args.mask = mask.data();
  pool_tokens(args, TokenPooling::mean, out.data());
  CHECK(out[0] == 2);
  CHECK(out[1] == 20);
}
