// Attention in blocks and chunks, to global tokens and relative positions, and convolutions against
// their definitions in double precision, on a scalar that counts operations.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "definitions.h"
#include "kernels/blocked_attention.h"
#include "kernels/convolution.h"
#include "kernels/disentangled.h"
#include "kernels/gemm.h"
#include "kernels/transient_global.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

/// Three heads of 5 dimensions for 7 tokens of 2 sequences, in blocks of 3: the last one is short.
constexpr std::int64_t kSequences2 = 2;
constexpr std::int64_t kTokens7 = 7;
constexpr std::int64_t kHeads3 = 3;
constexpr std::int64_t kDim5 = 5;
constexpr std::int64_t kWidth15 = kHeads3 * kDim5;
constexpr std::int64_t kBlock3 = 3;
constexpr std::int64_t kBlocks3 = 3;

/// Element `i` of a row of one head; row `index` of sequence `item`, which may lie outside it.
using HeadRow =
    std::function<double(std::int64_t item, std::int64_t index, std::int64_t head, std::int64_t i)>;

/// Rows [sequences, count, width] of which heads begin at `first`; zeros outside a sequence.
HeadRow rows_of(const std::vector<float>& values, std::int64_t count, std::int64_t width,
                std::int64_t first) {
  return [&values, count, width, first](std::int64_t item, std::int64_t index, std::int64_t head,
                                        std::int64_t i) {
    if (index < 0 || index >= count) return 0.0;
    return at(values, (item * count + index) * width + first + head * kDim5 + i);
  };
}

/// Attention of blocks of queries to the keys of three blocks, and to `globals` rows behind them
/// (arXiv 2112.07916, section 3.1).
struct BlockDefinition {
  HeadRow query, key, value, global_key, global_value;
  std::int64_t globals = 0;

  [[nodiscard]] std::int64_t keys() const { return 3 * kBlock3 + globals; }

  /// Key or value `j` of a block.
  [[nodiscard]] double row(const HeadRow& local, const HeadRow& global, std::int64_t item,
                           std::int64_t block, std::int64_t j, std::int64_t head,
                           std::int64_t i) const {
    if (j >= 3 * kBlock3) return global(item, j - 3 * kBlock3, head, i);
    return local(item, (block - 1) * kBlock3 + j, head, i);
  }

  /// Scores [sequences, blocks, heads, block, keys].
  [[nodiscard]] std::vector<double> scores() const {
    std::vector<double> out;
    for_queries([&](std::int64_t item, std::int64_t block, std::int64_t head, std::int64_t place) {
      for (std::int64_t j = 0; j < keys(); ++j) {
        out.push_back(sum_of(kDim5, [&](std::int64_t i) {
                        return times(query(item, block * kBlock3 + place, head, i),
                                     row(key, global_key, item, block, j, head, i));
                      }).value());
      }
    });
    return out;
  }

  /// Context [sequences, tokens, heads, dimensions] of probabilities in the order of the scores.
  [[nodiscard]] std::vector<double> context(const std::vector<float>& probabilities) const {
    std::vector<double> out(static_cast<std::size_t>(kSequences2 * kTokens7 * kWidth15));
    std::int64_t number = 0;
    for_queries([&](std::int64_t item, std::int64_t block, std::int64_t head, std::int64_t place) {
      for (std::int64_t i = 0; i < kDim5; ++i) {
        const CountingScalar sum = sum_of(keys(), [&](std::int64_t j) {
          return times(at(probabilities, number * keys() + j),
                       row(value, global_value, item, block, j, head, i));
        });
        const std::int64_t token = block * kBlock3 + place;
        if (token >= kTokens7) continue;
        const std::int64_t element = (item * kTokens7 + token) * kWidth15 + head * kDim5 + i;
        out[static_cast<std::size_t>(element)] = sum.value();
      }
      ++number;
    });
    return out;
  }

  template <class Visit>
  static void for_queries(const Visit& visit) {
    for (std::int64_t item = 0; item < kSequences2; ++item) {
      for (std::int64_t block = 0; block < kBlocks3; ++block) {
        for (std::int64_t head = 0; head < kHeads3; ++head) {
          for (std::int64_t place = 0; place < kBlock3; ++place) visit(item, block, head, place);
        }
      }
    }
  }
};

AttentionArguments block_sizes(std::int64_t queries, std::int64_t keys) {
  AttentionArguments block;
  block.heads = block.kv_heads = kHeads3;
  block.head_dim = block.value_head_dim = kDim5;
  block.queries = queries;
  block.keys = keys;
  return block;
}

}  // namespace

TEST_CASE("attention in blocks multiplies each block's queries with the keys of three blocks") {
  constexpr std::int64_t kRowWidth45 = 3 * kWidth15;
  const std::vector<float> rows = random_floats(kSequences2 * kTokens7 * kRowWidth45, 1);
  BlockedAttentionArguments args;
  args.block = block_sizes(kBlock3, 3 * kBlock3);
  args.block.past = kBlock3;
  args.batch = kSequences2;
  args.tokens = kTokens7;
  args.rows = rows.data();
  args.row_width = kRowWidth45;
  BlockDefinition definition;
  definition.query = rows_of(rows, kTokens7, kRowWidth45, 0);
  definition.key = rows_of(rows, kTokens7, kRowWidth45, kWidth15);
  definition.value = rows_of(rows, kTokens7, kRowWidth45, 2 * kWidth15);
  std::vector<float> padded = zeros(args.padded_floats());
  std::vector<float> context = zeros(args.context_floats());
  pad_rows(args, padded.data());

  (void)CountingScalar::take_operations();
  const std::vector<double> expected_scores = definition.scores();
  std::vector<float> scores = zeros(std::ssize(expected_scores));
  const std::int64_t score_flops = blocked_scores(args, padded.data(), scores.data());
  check_definition(scores, score_flops, expected_scores);

  const std::vector<float> probabilities = random_floats(std::ssize(scores), 2);
  const std::vector<double> expected = definition.context(probabilities);
  std::vector<float> out = zeros(std::ssize(expected));
  const std::int64_t flops =
      blocked_context(args, padded.data(), probabilities.data(), context.data(), out.data());
  check_definition(out, flops, expected);
}

TEST_CASE("transient global tokens are keys of every block, behind those of three blocks") {
  constexpr std::int64_t kGlobals2 = 2;
  const std::vector<float> queries = random_floats(kSequences2 * kTokens7 * kWidth15, 1);
  const std::vector<float> keys = random_floats(kSequences2 * kTokens7 * 2 * kWidth15, 2);
  const std::vector<float> globals = random_floats(kSequences2 * kGlobals2 * 2 * kWidth15, 3);
  TransientGlobalArguments args;
  args.block = block_sizes(kBlock3, 3 * kBlock3 + kGlobals2);
  args.batch = kSequences2;
  args.tokens = kTokens7;
  args.queries = queries.data();
  args.key_values = keys.data();
  args.global_key_values = globals.data();
  BlockDefinition definition;
  definition.globals = kGlobals2;
  definition.query = rows_of(queries, kTokens7, kWidth15, 0);
  definition.key = rows_of(keys, kTokens7, 2 * kWidth15, 0);
  definition.value = rows_of(keys, kTokens7, 2 * kWidth15, kWidth15);
  definition.global_key = rows_of(globals, kGlobals2, 2 * kWidth15, 0);
  definition.global_value = rows_of(globals, kGlobals2, 2 * kWidth15, kWidth15);
  std::vector<float> scratch = zeros(args.scratch_floats());
  std::vector<float> context = zeros(args.context_floats());

  (void)CountingScalar::take_operations();
  const std::vector<double> expected_scores = definition.scores();
  std::vector<float> scores = zeros(std::ssize(expected_scores));
  const std::int64_t score_flops = transient_global_scores(args, scratch.data(), scores.data());
  check_definition(scores, score_flops, expected_scores);

  const std::vector<float> probabilities = random_floats(std::ssize(scores), 4);
  const std::vector<double> expected = definition.context(probabilities);
  std::vector<float> out = zeros(std::ssize(expected));
  const std::int64_t flops = transient_global_context(args, probabilities.data(), scratch.data(),
                                                      context.data(), out.data());
  check_definition(out, flops, expected);
}

namespace {

/// DeBERTa's layer with 8 table rows of 11 values, as far as 4 tokens on either side.
struct DisentangledCase {
  static constexpr std::int64_t kPositions = 8;
  static constexpr std::int64_t kTableWidth = 11;

  DisentangledCase(bool content_to_position, bool position_to_content) {
    args.spec.num_positions = kPositions;
    args.spec.content_to_position = content_to_position;
    args.spec.position_to_content = position_to_content;
    args.batch = kSequences2;
    args.heads = kHeads3;
    args.head_dim = kDim5;
    args.tokens = kTokens7;
    args.width = kTableWidth;
    args.scale = 0.25F;
    args.contents = contents.data();
    args.row_width = 3 * kWidth15;
    args.table = table.data();
    if (content_to_position) args.key = {weights[0].data(), biases[0].data()};
    if (position_to_content) args.query = {weights[1].data(), biases[1].data()};
  }

  /// Projected table rows [positions, heads·head_dim].
  [[nodiscard]] std::vector<double> projected(std::size_t projection) const {
    std::vector<double> rows;
    for (std::int64_t position = 0; position < kPositions; ++position) {
      for (std::int64_t feature = 0; feature < kWidth15; ++feature) {
        const CountingScalar product = sum_of(kTableWidth, [&](std::int64_t i) {
          return times(at(table, position * kTableWidth + i),
                       at(weights[projection], feature * kTableWidth + i));
        });
        rows.push_back(product.value() + at(biases[projection], feature));
      }
    }
    return rows;
  }

  /// Products [sequences, heads, tokens, positions] of queries (`part` 0) or keys (1) with a table.
  [[nodiscard]] std::vector<double> products(std::int64_t part,
                                             const std::vector<double>& rows) const {
    std::vector<double> out;
    for (std::int64_t row = 0; row < kSequences2 * kHeads3 * kTokens7; ++row) {
      const std::int64_t token = row / (kHeads3 * kTokens7) * kTokens7 + row % kTokens7;
      const std::int64_t head = row / kTokens7 % kHeads3 * kDim5;
      for (std::int64_t position = 0; position < kPositions; ++position) {
        out.push_back(
            sum_of(kDim5, [&](std::int64_t i) {
              const auto element = static_cast<std::size_t>(position * kWidth15 + head + i);
              return times(at(contents, token * 3 * kWidth15 + part * kWidth15 + head + i),
                           rows[element]);
            }).value());
      }
    }
    return out;
  }

  /// transformers 5.24, models/deberta_v2, disentangled_attention_bias: both terms read the row of
  /// the clamped distance of query and key.
  [[nodiscard]] std::vector<double> bias() const {
    std::vector<double> of_queries;
    std::vector<double> of_keys;
    if (args.spec.content_to_position) of_queries = products(0, projected(0));
    if (args.spec.position_to_content) of_keys = products(1, projected(1));
    std::vector<double> out;
    for (std::int64_t matrix = 0; matrix < kSequences2 * kHeads3; ++matrix) {
      for (std::int64_t query = 0; query < kTokens7; ++query) {
        for (std::int64_t key = 0; key < kTokens7; ++key) {
          const std::int64_t row = std::clamp<std::int64_t>(query - key + 4, 0, 7);
          const auto element = [&](std::int64_t token) {
            return static_cast<std::size_t>((matrix * kTokens7 + token) * kPositions + row);
          };
          out.push_back(0.25 * ((of_queries.empty() ? 0 : of_queries[element(query)]) +
                                (of_keys.empty() ? 0 : of_keys[element(key)])));
        }
      }
    }
    return out;
  }

  std::vector<float> contents = random_floats(kSequences2 * kTokens7 * 3 * kWidth15, 1);
  std::vector<float> table = random_floats(kPositions * kTableWidth, 2);
  std::vector<float> weights[2] = {random_floats(kWidth15 * kTableWidth, 3),
                                   random_floats(kWidth15* kTableWidth, 4)};
  std::vector<float> biases[2] = {random_floats(kWidth15, 5), random_floats(kWidth15, 6)};
  DisentangledArguments args;
};

}  // namespace

TEST_CASE("DeBERTa's biases are products of contents with the projected rows of the table") {
  const std::pair<bool, bool> kTerms[] = {{true, false}, {false, true}, {true, true}};
  for (const std::pair<bool, bool>& terms : kTerms) {
    const DisentangledCase one(terms.first, terms.second);
    (void)CountingScalar::take_operations();
    const std::vector<double> expected = one.bias();
    std::vector<float> scratch = zeros(one.args.scratch_floats());
    std::vector<float> out = zeros(std::ssize(expected));
    const std::int64_t flops = disentangled_bias(one.args, scratch.data(), out.data());
    check_definition(out, flops, expected);
  }
}

namespace {

std::unique_ptr<PackedLinear> linear_of(const std::vector<float>& weight, std::int64_t in) {
  const LinearPart part{weight, {}};
  return std::make_unique<PackedLinear>(std::span(&part, 1), in, LinearOptions{});
}

/// Runs the GEMM; returns its FLOPs.
std::int64_t run_linear(PackedLinear& linear, const std::vector<float>& x, std::vector<float>& y) {
  const std::int64_t rows = std::ssize(x) / linear.in_features();
  y = zeros(rows * linear.out_features());
  linear.prepare(rows);
  return linear.run(x.data(), y.data(), rows);
}

}  // namespace

TEST_CASE("a grouped convolution with a stride and dilation is the sum over channels and taps") {
  constexpr std::int64_t kGroups = 2;
  constexpr std::int64_t kGroupIn = 3;
  constexpr std::int64_t kGroupOut = 5;
  constexpr std::int64_t kInputs = 9;
  ConvolutionArguments args;
  args.batch = 2;
  args.channels = kGroups * kGroupIn;
  args.length = 4;
  args.kernel = 3;
  args.stride = 2;
  args.dilation = 2;
  args.left_padding = 2;
  args.inputs = kInputs;
  const std::vector<float> x = random_floats(args.batch * kInputs * args.channels, 1);
  std::vector<float> padded = zeros(args.batch * args.padded_length() * args.channels);
  pad_positions(args, x.data(), nullptr, padded.data());
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const std::vector<float> weight =
        random_floats(kGroupOut * kGroupIn * args.kernel, 2 + static_cast<unsigned>(group));
    std::vector<double> expected;
    (void)CountingScalar::take_operations();
    for (std::int64_t row = 0; row < args.rows(); ++row) {
      for (std::int64_t out = 0; out < kGroupOut; ++out) {
        const CountingScalar sum = sum_of(kGroupIn * args.kernel, [&](std::int64_t i) {
          const std::int64_t position =
              row % args.length * args.stride + i % args.kernel * args.dilation - 2;
          const bool inside = position >= 0 && position < kInputs;
          const std::int64_t channel = group * kGroupIn + i / args.kernel;
          const std::int64_t place = (row / args.length * kInputs + position) * args.channels;
          return times(inside ? at(x, place + channel) : 0,
                       at(weight, out * kGroupIn * args.kernel + i));
        });
        expected.push_back(sum.value());
      }
    }
    std::vector<float> gathered = zeros(args.rows() * kGroupIn * args.kernel);
    gather_group(args, kGroupIn, group, padded.data(), gathered.data());
    std::vector<float> y;
    const std::int64_t flops = run_linear(*linear_of(weight, kGroupIn * args.kernel), gathered, y);
    check_definition(y, flops, expected);
  }
}

TEST_CASE(
    "a convolution of a grid is the sum over channels and nine places around each other one") {
  constexpr GridArguments kGrid{5, 4, 3};
  constexpr std::int64_t kOut = 6;
  constexpr std::int64_t kValues = 9 * kGrid.channels;
  const std::vector<float> grid = random_floats(kGrid.rows * kGrid.columns * kGrid.channels, 1);
  const std::vector<float> weight = random_floats(kOut * kValues, 2);
  std::vector<double> expected;
  (void)CountingScalar::take_operations();
  for (std::int64_t place = 0; place < 3 * 2; ++place) {
    for (std::int64_t out = 0; out < kOut; ++out) {
      const CountingScalar sum = sum_of(kValues, [&](std::int64_t i) {
        const std::int64_t row = place / 2 * 2 + i % 9 / 3 - 1;
        const std::int64_t column = place % 2 * 2 + i % 3 - 1;
        const bool inside = row >= 0 && row < kGrid.rows && column >= 0 && column < kGrid.columns;
        const std::int64_t from = (row * kGrid.columns + column) * kGrid.channels + i / 9;
        return times(inside ? at(grid, from) : 0, at(weight, out * kValues + i));
      });
      expected.push_back(sum.value());
    }
  }
  std::vector<float> gathered = zeros(3 * 2 * kValues);
  gather_places(kGrid, grid.data(), gathered.data());
  std::vector<float> y;
  const std::int64_t flops = run_linear(*linear_of(weight, kValues), gathered, y);
  check_definition(y, flops, expected);
}
