// Compressed keys and hyper-connections: tokens in pieces against all at once, and what their
// definitions promise. Outputs of whole models are compared in test_golden_outputs.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/hyper_connections.h"
#include "kernels/key_compression.h"
#include "random_numbers.h"

using namespace headroom::measured;

namespace {

std::vector<float> drawn_values(std::int64_t count, std::uint64_t seed) {
  SplitMix64 numbers(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  std::ranges::generate(values, [&] { return numbers.next(); });
  return values;
}

/// A compressor of two sequences of `kCompressedTokens`.
constexpr std::int64_t kCompressedBatch = 2;
constexpr std::int64_t kCompressedTokens = 23;

CompressionArguments compressor_of(std::int64_t rate, std::int64_t series) {
  CompressionArguments args;
  args.batch = kCompressedBatch;
  args.tokens = kCompressedTokens;
  args.rate = rate;
  args.series = series;
  args.width = 3;
  args.out_entries = kCompressedTokens / rate;
  return args;
}

/// The tokens [first, first + count) of both sequences.
std::vector<float> token_rows_between(const CompressionArguments& whole, std::int64_t first,
                                      std::int64_t count) {
  std::vector<float> rows;
  for (std::int64_t sequence = 0; sequence < kCompressedBatch; ++sequence) {
    const float* const from =
        whole.rows + (sequence * kCompressedTokens + first) * whole.row_floats();
    rows.insert(rows.end(), from, from + count * whole.row_floats());
  }
  return rows;
}

/// Entries of `whole` from passes of `piece` tokens.
std::vector<float> compressed_in_pieces(const CompressionArguments& whole, std::int64_t piece) {
  std::vector<float> state(static_cast<std::size_t>(kCompressedBatch * whole.state_floats()),
                           -9.0F);
  std::vector<float> entries(
      static_cast<std::size_t>(kCompressedBatch * whole.out_entries * whole.width));
  for (std::int64_t past = 0; past < kCompressedTokens; past += piece) {
    CompressionArguments args = whole;
    args.past = past;
    args.tokens = std::min(piece, kCompressedTokens - past);
    args.out_entries = args.new_entries();
    const std::vector<float> rows = token_rows_between(whole, past, args.tokens);
    args.rows = rows.data();
    args.state = state.data();
    std::vector<float> made(
        static_cast<std::size_t>(kCompressedBatch * args.out_entries * args.width));
    compress_keys(args, made.data());
    keep_open_window(args);
    const std::int64_t floats = args.out_entries * args.width;
    for (std::int64_t sequence = 0; sequence < kCompressedBatch; ++sequence) {
      std::copy_n(
          made.begin() + sequence * floats, floats,
          entries.begin() + (sequence * whole.out_entries + past / whole.rate) * whole.width);
    }
  }
  return entries;
}

}  // namespace

TEST_CASE("compressed keys of tokens in pieces equal those of all at once") {
  for (const std::int64_t rate : {2, 4, 7}) {
    for (const std::int64_t series : {1, 2}) {
      CAPTURE(rate);
      CAPTURE(series);
      CompressionArguments args = compressor_of(rate, series);
      const std::vector<float> rows =
          drawn_values(kCompressedBatch * kCompressedTokens * args.row_floats(), 1);
      const std::vector<float> bias = drawn_values(rate * series * args.width, 2);
      args.rows = rows.data();
      args.bias = bias.data();
      std::vector<float> whole(
          static_cast<std::size_t>(kCompressedBatch * args.out_entries * args.width));
      compress_keys(args, whole.data());
      for (const std::int64_t piece : {1, 2, 3, 5, 12}) {
        CAPTURE(piece);
        CHECK(compressed_in_pieces(args, piece) == whole);
      }
    }
  }
}

TEST_CASE("a window of equal gates is compressed to the mean of its keys") {
  CompressionArguments args = compressor_of(4, 1);
  const std::vector<float> keys =
      drawn_values(kCompressedBatch * kCompressedTokens * args.width, 3);
  std::vector<float> rows;
  for (auto key = keys.begin(); key != keys.end(); key += args.width) {
    rows.insert(rows.end(), key, key + args.width);
    rows.insert(rows.end(), static_cast<std::size_t>(args.width), 0.5F);
  }
  const std::vector<float> bias(static_cast<std::size_t>(args.rate * args.width));
  args.rows = rows.data();
  args.bias = bias.data();
  std::vector<float> entries(
      static_cast<std::size_t>(kCompressedBatch * args.out_entries * args.width));
  compress_keys(args, entries.data());
  const auto key = [&](std::size_t token) { return keys[token * 3 + 1]; };
  CHECK(entries[1] == doctest::Approx(static_cast<double>(key(0) + key(1) + key(2) + key(3)) / 4));
  CHECK(entries[4] == doctest::Approx(static_cast<double>(key(4) + key(5) + key(6) + key(7)) / 4));
}

TEST_CASE("weights of independent streams lie between epsilon and the scale of additions") {
  constexpr std::int64_t kStreams = 3;
  constexpr std::int64_t kStride = 2 * kStreams;
  std::vector<float> weights = drawn_values(5 * kStride, 4);
  const std::vector<float> logits = weights;
  const std::vector<float> base = drawn_values(kStride, 5);
  const std::vector<float> scale{2, 3};
  stream_weights({.rows = 5,
                  .streams = kStreams,
                  .stride = kStride,
                  .eps = 0.25F,
                  .base = base.data(),
                  .scale = scale.data(),
                  .addition_scale = 1.5F,
                  .addition_eps = 0.125F},
                 weights.data());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t column = i % kStride;
    const bool sums = column < kStreams;
    const double logit =
        static_cast<double>(logits[i]) * (sums ? 2 : 3) + static_cast<double>(base[column]);
    const double sigmoid = 1 / (1 + std::exp(-logit));
    CHECK(weights[i] == doctest::Approx(sums ? sigmoid + 0.25 : 1.5 * sigmoid + 0.125));
  }
}

TEST_CASE("weights of streams are bounded, and their matrix is doubly stochastic") {
  constexpr std::int64_t kStreams = 4;
  constexpr std::int64_t kStride = kStreams * (kStreams + 2);
  std::vector<float> weights = drawn_values(3 * kStride, 4);
  const std::vector<float> base = drawn_values(kStride, 5);
  const std::vector<float> scale{2, 3, 4};
  stream_weights({3, kStreams, kStride, 50, 1e-6F, base.data(), scale.data()}, weights.data());
  for (std::size_t row = 0; row < 3; ++row) {
    const float* const own = weights.data() + row * kStride;
    const float* const matrix = own + 2 * kStreams;
    for (std::int64_t i = 0; i < kStreams; ++i) {
      CHECK((own[i] > 0 && own[i] < 1.001F));
      CHECK((own[kStreams + i] > 0 && own[kStreams + i] < 2));
      float in_row = 0;
      float in_column = 0;
      for (std::int64_t j = 0; j < kStreams; ++j) {
        in_row += matrix[i * kStreams + j];
        in_column += matrix[j * kStreams + i];
      }
      CHECK(in_row == doctest::Approx(1).epsilon(1e-3));
      CHECK(in_column == doctest::Approx(1).epsilon(1e-3));
    }
  }
}
