// Kernels of attention with relative positions and of attention in blocks against their
// definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_data.h"
#include "kernels/blocked_attention.h"
#include "kernels/transformer_xl.h"

using namespace headroom;
using namespace headroom::measured;
using headroom::measured::testing::largest_error;
using headroom::measured::testing::random_floats;
using headroom::measured::testing::widened;

namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kWidth = 4;  // of a head
constexpr std::int64_t kTokens = 7;
constexpr std::int64_t kRow = 3 * kHeads * kWidth;

}  // namespace

// arXiv 1901.02860, section 3.3: the row of a distance has its sines, then its cosines.
TEST_CASE("sinusoids run from the most distant earlier token to the most distant later one") {
  std::vector<float> out(2 * 6 * 4);
  fill_relative_sinusoids({2, 6, 4, 2}, out.data());
  const double distances[] = {2, 2, 1, 0, -1, -2};  // 3 is clamped to 2
  for (std::size_t row = 0; row < 12; ++row) {
    CAPTURE(row);
    const double distance = distances[row % 6];
    const float* const values = out.data() + row * 4;
    CHECK(static_cast<double>(values[0]) == doctest::Approx(std::sin(distance)));
    CHECK(static_cast<double>(values[1]) == doctest::Approx(std::sin(distance / 100)));
    CHECK(static_cast<double>(values[2]) == doctest::Approx(std::cos(distance)));
    CHECK(static_cast<double>(values[3]) == doctest::Approx(std::cos(distance / 100)));
  }
}

TEST_CASE("Transformer-XL's biases are the sums over distances and segments that define them") {
  const auto rows = random_floats(kBatch * kTokens * kRow, 1);
  const auto positions = random_floats(kBatch * 2 * kTokens * kHeads * kWidth, 2);
  const auto biases = random_floats(3 * kHeads * kWidth, 3);
  const auto segments = random_floats(2 * kHeads * kWidth, 4);
  const std::vector<std::int64_t> ids{0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0};
  TransformerXlArguments args;
  args.batch = kBatch;
  args.heads = kHeads;
  args.head_dim = kWidth;
  args.tokens = kTokens;
  args.scale = 0.5F;
  args.contents = rows.data();
  args.row_width = kRow;
  args.positions = positions.data();
  args.content_bias = biases.data();
  args.position_bias = biases.data() + kHeads * kWidth;
  args.segment_bias = biases.data() + 2 * kHeads * kWidth;
  args.segments = segments.data();
  args.segment_ids = ids.data();
  std::vector<double> expected;
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t i = 0; i < kTokens; ++i) {
        for (std::int64_t j = 0; j < kTokens; ++j) {
          const auto at = [&](const std::vector<float>& values, std::int64_t index) {
            return static_cast<double>(values[static_cast<std::size_t>(index)]);
          };
          const bool same = ids[static_cast<std::size_t>(b * kTokens + i)] ==
                            ids[static_cast<std::size_t>(b * kTokens + j)];
          double sum = 0;
          for (std::int64_t k = 0; k < kWidth; ++k) {
            const std::int64_t feature = h * kWidth + k;
            const double q = at(rows, (b * kTokens + i) * kRow + feature);
            const double key = at(rows, (b * kTokens + j) * kRow + kHeads * kWidth + feature);
            // Row `tokens` is for distance 0.
            const std::int64_t row = b * 2 * kTokens + kTokens - (i - j);
            const double r = at(positions, row * kHeads * kWidth + feature);
            const double g = at(segments, (same ? 0 : kHeads * kWidth) + feature);
            sum += at(biases, feature) * key + (q + at(biases, kHeads * kWidth + feature)) * r +
                   (q + at(biases, 2 * kHeads * kWidth + feature)) * g;
          }
          expected.push_back(0.5 * sum);
        }
      }
    }
  }
  std::vector<float> scratch(static_cast<std::size_t>(args.scratch_floats()));
  std::vector<float> bias(expected.size());
  const std::int64_t flops = transformer_xl_bias(args, scratch.data(), bias.data());
  CHECK(largest_error(bias, expected) < 1e-5);
  // Dot products with 14 positions and 2 segments, and with one-hot rows of 2 segments per pair.
  CHECK(flops == kBatch * kHeads * 2 * (7 * 4 * 14 + 7 * 4 * 2 + 7 * 7 * 2));
}

TEST_CASE("attention in blocks equals attention in a window of less than a block") {
  constexpr std::int64_t kBlock = 3;
  constexpr std::int64_t kContext = kHeads * kWidth;
  const auto rows = random_floats(kBatch * kTokens * kRow, 5);
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(kBatch * kTokens), 1);
  mask.back() = 0;

  AttentionArguments whole;
  whole.batch = kBatch;
  whole.heads = whole.kv_heads = kHeads;
  whole.head_dim = whole.value_head_dim = kWidth;
  whole.queries = whole.keys = kTokens;
  whole.scale = 0.5F;
  whole.window = {WindowKind::centred, kBlock - 1};
  BlockedAttentionArguments args;
  args.block = whole;
  args.block.batch = 1;
  args.block.queries = kBlock;
  args.block.keys = 3 * kBlock;
  args.block.past = kBlock;
  args.batch = kBatch;
  args.tokens = kTokens;
  args.rows = rows.data();
  args.row_width = kRow;
  args.key_mask = mask.data();

  whole.q = rows.data();
  whole.k = whole.q + kContext;
  whole.v = whole.k + kContext;
  whole.q_stride = whole.k_stride = whole.v_stride = kRow;
  whole.q_batch_stride = whole.k_batch_stride = whole.v_batch_stride = kTokens * kRow;
  whole.k_head_stride = whole.v_head_stride = kWidth;
  whole.out_stride = kContext;
  whole.out_batch_stride = kTokens * kContext;
  whole.key_mask = mask.data();
  std::vector<float> scores(static_cast<std::size_t>(kBatch * kHeads * kTokens * kTokens));
  std::vector<float> expected(static_cast<std::size_t>(kBatch * kTokens * kContext));
  whole.out = expected.data();
  (void)attention_scores(whole, scores.data());
  attention_softmax(whole, scores.data());
  (void)attention_context(whole, scores.data());

  std::vector<float> padded(static_cast<std::size_t>(args.padded_floats()));
  std::vector<float> context(static_cast<std::size_t>(args.context_floats()));
  std::vector<float> out(expected.size());
  std::vector<float> blocks(static_cast<std::size_t>(kBatch * 3 * kHeads * kBlock * 3 * kBlock));
  pad_rows(args, padded.data());
  const std::int64_t flops = blocked_scores(args, padded.data(), blocks.data());
  blocked_softmax(args, padded_key_mask(args), blocks.data());
  CHECK(blocked_context(args, padded.data(), blocks.data(), context.data(), out.data()) == flops);
  CHECK(largest_error(out, widened(expected)) < 1e-5);
  // 7 tokens are 3 blocks of 3 queries, each with 9 keys.
  CHECK(flops == 2 * kBatch * kHeads * 9 * 9 * kWidth);
}
