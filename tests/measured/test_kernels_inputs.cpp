// Embeddings, positions and patches against their formulas.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "embedding.h"
#include "kernel_data.h"
#include "patches.h"
#include "relative_bias.h"
#include "rotary.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

TEST_CASE("a token's embedding is the sum of its scaled word, position and type") {
  constexpr std::int64_t kWidth = 33;
  const std::vector<float> words = random_floats(10 * kWidth, 1);
  const std::vector<float> positions = random_floats(10 * kWidth, 2);
  const std::vector<float> types = random_floats(2 * kWidth, 3);
  const std::array<std::int64_t, 6> ids{9, 0, 4, 4, 1, 7};
  const std::array<std::int64_t, 6> type_ids{0, 1, 1, 0, 0, 1};
  const std::array<std::int64_t, 6> position_ids{5, 6, 7, 1, 1, 2};
  const RowReader word_row = [&](std::int64_t row, float* to) {
    std::copy_n(words.data() + row * kWidth, kWidth, to);
  };
  TokenEmbeddingArguments args{2, 3, kWidth, word_row, ids.data(), 3.0F};
  const auto check = [&](const std::array<std::int64_t, 6>& expected_positions, bool typed) {
    std::vector<float> out(6 * kWidth);
    embed_tokens(args, out.data());
    std::vector<double> expected;
    for (std::size_t token = 0; token < ids.size(); ++token) {
      for (std::int64_t i = 0; i < kWidth; ++i) {
        const auto at = [&](const std::vector<float>& table, std::int64_t row) {
          return static_cast<double>(table[static_cast<std::size_t>(row * kWidth + i)]);
        };
        expected.push_back(3 * at(words, ids[token]) + at(positions, expected_positions[token]) +
                           (typed ? at(types, args.type_ids == nullptr ? 0 : type_ids[token]) : 0));
      }
    }
    CHECK(largest_error(out, expected) < 1e-6);
  };
  args.position_table = positions.data();
  args.first_position = 2;
  check({2, 3, 4, 2, 3, 4}, false);
  args.type_table = types.data();
  check({2, 3, 4, 2, 3, 4}, true);
  args.type_ids = type_ids.data();
  args.position_ids = position_ids.data();
  check(position_ids, true);
}

TEST_CASE("sinusoidal positions interleave sines and cosines of falling frequency") {
  const std::vector<float> table = sinusoidal_positions(50, 8);
  for (const std::size_t position : {0U, 1U, 49U}) {
    const auto p = static_cast<double>(position);
    CHECK(static_cast<double>(table[position * 8]) == doctest::Approx(std::sin(p)));
    CHECK(static_cast<double>(table[position * 8 + 1]) == doctest::Approx(std::cos(p)));
    CHECK(static_cast<double>(table[position * 8 + 6]) == doctest::Approx(std::sin(p / 1000)));
    CHECK(static_cast<double>(table[position * 8 + 7]) == doctest::Approx(std::cos(p / 1000)));
  }
}

TEST_CASE("RoPE frequencies follow each kind of scaling") {
  RopeSpec rope;
  rope.theta = 10000;
  rope.factor = 4;
  CHECK(rotary_frequencies(rope, 8, 10, 10)[2] == doctest::Approx(0.01));
  rope.scaling = RopeScalingKind::linear;
  CHECK(rotary_frequencies(rope, 8, 10, 10)[2] == doctest::Approx(0.0025));
  rope.scaling = RopeScalingKind::dynamic;
  CHECK(rotary_frequencies(rope, 8, 10, 10)[2] == doctest::Approx(0.01));
  // Three times the context: theta · (4·3 - 3)^(8/6)
  const double theta = 10000 * std::pow(9.0, 8.0 / 6.0);
  CHECK(rotary_frequencies(rope, 8, 30, 10)[2] == doctest::Approx(std::pow(theta, -0.5)));
}

TEST_CASE("llama3 RoPE scaling keeps high frequencies, scales low ones and interpolates between") {
  RopeSpec rope;
  rope.theta = 500000;
  rope.scaling = RopeScalingKind::llama3;
  rope.factor = 8;
  rope.low_freq_factor = 1;
  rope.high_freq_factor = 4;
  rope.original_max_position_embeddings = 8192;
  const std::vector<float> scaled = rotary_frequencies(rope, 128, 1, 1);
  rope.scaling = RopeScalingKind::none;
  const std::vector<float> plain = rotary_frequencies(rope, 128, 1, 1);
  int between = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double frequency = static_cast<double>(plain[i]);
    const double wave = 2 * 3.141592653589793 / frequency;
    const double smooth = std::clamp((8192 / wave - 1) / 3, 0.0, 1.0);
    between += smooth > 0 && smooth < 1 ? 1 : 0;
    const double expected = (1 - smooth) * frequency / 8 + smooth * frequency;
    CHECK(static_cast<double>(scaled[i]) == doctest::Approx(expected).epsilon(1e-5));
  }
  CHECK(between > 0);
}

TEST_CASE("RoPE rotates pairs half a head apart, from a given first position") {
  constexpr std::int64_t kHalf = 9;
  const RotaryTable table = make_rotary_table({}, 2 * kHalf, 20, 20);
  const RotaryArguments args{2, 3, 2, 2 * kHalf, 4 * kHalf + 5, 200, 7};
  const std::vector<float> before = random_floats(400, 1);
  std::vector<float> x = before;
  apply_rotary(table, args, x.data());
  std::vector<double> expected = widened(before);
  for (std::int64_t row = 0; row < args.batch * args.seq_len * args.heads; ++row) {
    const std::int64_t token = row / args.heads % args.seq_len;
    const std::int64_t at = row / args.heads / args.seq_len * args.batch_stride +
                            token * args.stride + row % args.heads * 2 * kHalf;
    for (std::int64_t i = 0; i < kHalf; ++i) {
      const auto low = static_cast<std::size_t>(at + i);
      const auto high = low + kHalf;
      const double angle = static_cast<double>(args.first_position + token) *
                           std::pow(10000.0, -2.0 * static_cast<double>(i) / (2 * kHalf));
      expected[low] = static_cast<double>(before[low]) * std::cos(angle) -
                      static_cast<double>(before[high]) * std::sin(angle);
      expected[high] = static_cast<double>(before[high]) * std::cos(angle) +
                       static_cast<double>(before[low]) * std::sin(angle);
    }
  }
  CHECK(largest_error(x, expected) < 2e-6);
}

TEST_CASE(
    "relative position buckets are exact for small distances, logarithmic beyond, and bounded") {
  RelativeBiasArguments args;
  args.num_buckets = 32;
  args.max_distance = 128;
  // Known values of T5's formula: half of the buckets for following keys, eight of each half exact.
  CHECK(relative_bucket(args, 0) == 0);
  CHECK(relative_bucket(args, -7) == 7);
  CHECK(relative_bucket(args, 7) == 23);
  CHECK(relative_bucket(args, -8) == 8);
  CHECK(relative_bucket(args, -11) == 8);
  CHECK(relative_bucket(args, -12) == 9);
  CHECK(relative_bucket(args, -127) == 15);
  CHECK(relative_bucket(args, 5000) == 31);
  args.masking = Masking::causal;
  CHECK(relative_bucket(args, 3) == 0);
  CHECK(relative_bucket(args, -15) == 15);
  CHECK(relative_bucket(args, -16) == 16);
  CHECK(relative_bucket(args, -20) == 17);
  CHECK(relative_bucket(args, -112) == 30);
  CHECK(relative_bucket(args, -113) == 31);
  CHECK(relative_bucket(args, -5000) == 31);
}

TEST_CASE("the relative bias of a pair is the entry of its bucket and head") {
  RelativeBiasArguments args{3, 5, 40, 35, Masking::causal, 8, 20, nullptr};
  const std::vector<float> table = random_floats(args.num_buckets * args.heads, 1);
  args.table = table.data();
  std::vector<float> bias(static_cast<std::size_t>(args.heads * args.queries * args.keys));
  fill_relative_bias(args, bias.data());
  std::size_t at = 0;
  for (std::int64_t head = 0; head < args.heads; ++head) {
    for (std::int64_t query = 0; query < args.queries; ++query) {
      for (std::int64_t key = 0; key < args.keys; ++key) {
        const std::int64_t bucket = relative_bucket(args, key - query - args.past);
        CHECK(bias[at++] == table[static_cast<std::size_t>(bucket * args.heads + head)]);
      }
    }
  }
}

TEST_CASE("patches are in raster order, each in the order of a convolution's weight") {
  const Threads scope(2);
  // The second image has enough pixels for two threads; both have edges that are dropped.
  for (const PatchArguments& args : {PatchArguments{2, 3, 7, 9, 3}, {2, 3, 70, 77, 8}}) {
    const std::int64_t p = args.patch_size;
    const std::int64_t across = args.width / p;
    const std::int64_t patches = args.height / p * across;
    std::vector<float> image(
        static_cast<std::size_t>(args.batch * args.channels * args.height * args.width));
    std::iota(image.begin(), image.end(), 0.0F);
    std::vector<float> rows(static_cast<std::size_t>(args.batch * patches * args.channels * p * p));
    extract_patches(args, image.data(), rows.data());
    std::vector<float> expected;
    for (std::int64_t item = 0; item < args.batch; ++item) {
      for (std::int64_t patch = 0; patch < patches; ++patch) {
        for (std::int64_t i = 0; i < args.channels * p * p; ++i) {
          const std::int64_t channel = item * args.channels + i / (p * p);
          const std::int64_t y = patch / across * p + i % (p * p) / p;
          const std::int64_t x = patch % across * p + i % p;
          expected.push_back(static_cast<float>((channel * args.height + y) * args.width + x));
        }
      }
    }
    CHECK(rows == expected);
  }
}
