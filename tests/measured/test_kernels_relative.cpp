// Kernels of attention with relative positions and of attention in blocks against their
// definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "definitions.h"
#include "kernels/blocked_attention.h"
#include "kernels/transformer_xl.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

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
  (void)CountingScalar::take_operations();
  for (std::int64_t b = 0; b < kBatch; ++b) {
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t i = 0; i < kTokens; ++i) {
        // (q + bias)·row, for a row of positions or of segments.
        const auto product = [&](std::int64_t bias, const std::vector<float>& values,
                                 std::int64_t row) {
          return sum_of(kWidth, [&](std::int64_t k) {
            const std::int64_t feature = h * kWidth + k;
            return times(at(rows, (b * kTokens + i) * kRow + feature) +
                             at(biases, bias * kHeads * kWidth + feature),
                         at(values, row * kHeads * kWidth + feature));
          });
        };
        std::vector<CountingScalar> by_position;  // row `tokens` is for distance 0
        for (std::int64_t row = 0; row < 2 * kTokens; ++row) {
          by_position.push_back(product(1, positions, b * 2 * kTokens + row));
        }
        const CountingScalar by_segment[] = {product(2, segments, 0), product(2, segments, 1)};
        for (std::int64_t j = 0; j < kTokens; ++j) {
          const bool same = ids[static_cast<std::size_t>(b * kTokens + i)] ==
                            ids[static_cast<std::size_t>(b * kTokens + j)];
          double content = 0;  // the kernel of scores multiplies queries and keys
          for (std::int64_t k = 0; k < kWidth; ++k) {
            const std::int64_t feature = h * kWidth + k;
            content += at(biases, feature) *
                       at(rows, (b * kTokens + j) * kRow + kHeads * kWidth + feature);
          }
          // The reference code multiplies a one-hot row with both segments.
          const CountingScalar segment =
              sum_of(2, [&](std::int64_t k) { return by_segment[k] * (same == (k == 0) ? 1 : 0); });
          const double position = by_position[static_cast<std::size_t>(kTokens - (i - j))].value();
          expected.push_back(0.5 * (content + position + segment.value()));
        }
      }
    }
  }
  std::vector<float> scratch(static_cast<std::size_t>(args.scratch_floats()));
  std::vector<float> bias(expected.size());
  const std::int64_t flops = transformer_xl_bias(args, scratch.data(), bias.data());
  check_definition(bias, flops, expected);
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
