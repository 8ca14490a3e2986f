// The indexer's kernels against their definitions in double precision.
#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "counting_scalar.h"
#include "indexer.h"
#include "kernel_data.h"

using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

struct IndexerCase {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t head_dim;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t past;
  std::vector<float> q = random_floats(batch * queries * heads * head_dim, 1);
  std::vector<float> k = random_floats(batch * keys * head_dim, 2);
  std::vector<float> weights = random_floats(batch * queries * heads, 3);

  [[nodiscard]] IndexerArguments arguments() const {
    IndexerArguments args;
    args.batch = batch;
    args.heads = heads;
    args.head_dim = head_dim;
    args.queries = queries;
    args.keys = keys;
    args.past = past;
    args.key_batch_stride = keys * head_dim;
    args.q = q.data();
    args.k = k.data();
    args.weights = weights.data();
    return args;
  }

  /// q·k of a head, for query `row` of all sequences.
  [[nodiscard]] double product(std::int64_t row, std::int64_t head, std::int64_t key) const {
    CountingScalar sum;
    for (std::int64_t i = 0; i < head_dim; ++i) {
      sum += counted(q, (row * heads + head) * head_dim + i) *
             counted(k, (row / queries * keys + key) * head_dim + i);
    }
    return sum.value();
  }

  [[nodiscard]] double score(std::int64_t row, std::int64_t key) const {
    CountingScalar sum;
    for (std::int64_t head = 0; head < heads; ++head) {
      sum += counted(weights, row * heads + head) * std::fmax(product(row, head, key), 0.0);
    }
    return sum.value() / std::sqrt(static_cast<double>(heads * head_dim));
  }

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  static CountingScalar counted(const std::vector<float>& values, std::int64_t i) {
    return {static_cast<double>(values[index(i)])};
  }
};

}  // namespace

TEST_CASE("index scores are weighted sums of rectified products") {
  // The second has more queries, heads, keys and dimensions than fit into a block each.
  const IndexerCase cases[] = {{2, 3, 5, 4, 7, 3}, {2, 5, 530, 70, 90, 0}};
  for (const IndexerCase& c : cases) {
    CAPTURE(c.head_dim);
    const std::int64_t pairs = c.batch * c.queries * c.keys;
    std::vector<float> scores(IndexerCase::index(pairs));
    const std::int64_t flops = index_scores(c.arguments(), scores.data());
    (void)CountingScalar::take_operations();
    double largest = 0;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double error =
          static_cast<double>(scores[IndexerCase::index(i)]) - c.score(i / c.keys, i % c.keys);
      largest = std::fmax(largest, std::abs(error));
    }
    CHECK(flops == CountingScalar::take_operations());
    CHECK(largest < 1e-5);
  }
}

TEST_CASE("separate heads of an indexer have the plain products of their queries and keys") {
  for (const std::int64_t queries : {1, 70}) {  // few queries have a kernel of their own
    const IndexerCase c{2, 3, 21, queries, 90, 0};
    const std::int64_t rows = c.batch * c.heads * queries;
    std::vector<float> scores(IndexerCase::index(rows * c.keys));
    const std::int64_t flops = index_products(c.arguments(), scores.data());
    (void)CountingScalar::take_operations();
    double largest = 0;
    for (std::int64_t i = 0; i < rows * c.keys; ++i) {
      const std::int64_t row = i / c.keys;
      const std::int64_t token = row / queries / c.heads * queries + row % queries;
      const double product = c.product(token, row / queries % c.heads, i % c.keys);
      const double error = static_cast<double>(scores[IndexerCase::index(i)]) - product;
      largest = std::fmax(largest, std::abs(error));
    }
    CHECK(flops == CountingScalar::take_operations());
    CHECK(largest < 1e-5);
  }
}

TEST_CASE("every query chooses the best keys up to its own position") {
  const IndexerCase c{2, 3, 5, 4, 7, 3};
  constexpr std::int64_t kTopK = 3;
  IndexerArguments args = c.arguments();
  std::vector<std::uint8_t> mask(2 * 7, 1);
  mask[1] = 0;  // padding in the first sequence
  args.key_mask = mask.data();
  std::vector<float> scores(2 * 4 * 7);
  (void)index_scores(args, scores.data());
  const std::vector<float> before = scores;
  choose_keys(args, kTopK, scores.data());
  for (std::int64_t row = 0; row < 8; ++row) {
    const std::int64_t visible = c.past + row % c.queries + 1;
    const auto seen = [&](std::int64_t key) {
      return key < visible && mask[IndexerCase::index(row / 4 * 7 + key)] != 0;
    };
    for (std::int64_t key = 0; key < c.keys; ++key) {
      std::int64_t better = 0;
      const float own = before[IndexerCase::index(row * 7 + key)];
      for (std::int64_t other = 0; other < c.keys; ++other) {
        if (seen(other) && before[IndexerCase::index(row * 7 + other)] > own) ++better;
      }
      const bool chosen = seen(key) && better < kTopK;
      const float expected = chosen ? 0.0F : -std::numeric_limits<float>::infinity();
      CHECK(scores[IndexerCase::index(row * 7 + key)] == expected);
    }
  }
}

TEST_CASE("a query reads the tokens of chosen pools, and those behind the last whole pool") {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  PoolArguments args;
  args.queries = 4;
  args.past = 5;
  args.pool_size = 3;
  args.pools = 3;  // queries at tokens 5 to 8: the first sees 2 whole pools, the last 3
  args.keys = 9;
  std::vector<float> choice;
  for (std::int64_t row = 0; row < 4; ++row) {
    choice.insert(choice.end(), {row % 2 == 0 ? 0 : kNone, kNone, row == 3 ? 0 : kNone});
  }
  std::vector<float> tokens(4 * 9);
  choose_pool_tokens(args, choice.data(), tokens.data());
  for (std::int64_t row = 0; row < 4; ++row) {
    const std::int64_t visible = args.past + row + 1;
    for (std::int64_t token = 0; token < 9; ++token) {
      CAPTURE(row);
      CAPTURE(token);
      const std::int64_t pool = token / 3;
      const bool whole = (pool + 1) * 3 <= visible;
      const float expected = whole ? choice[IndexerCase::index(row * 3 + pool)] : 0;
      CHECK(tokens[IndexerCase::index(row * 9 + token)] == (token < visible ? expected : kNone));
    }
  }
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 1, 1, 1, 1, 0};
  args.key_mask = mask.data();
  choose_pool_tokens(args, choice.data(), tokens.data());
  for (std::int64_t token = 0; token < 9; ++token) {  // of the last query, which is padding
    CHECK(tokens[IndexerCase::index(3 * 9 + token)] == 0);
  }
}

TEST_CASE("sparse attention equals eager attention under the indexer's mask") {
  constexpr std::int64_t kQueries = 6;
  constexpr std::int64_t kHeads = 4;
  constexpr std::int64_t kDim = 8;
  constexpr std::int64_t kValueDim = 4;
  const std::vector<float> q = random_floats(kQueries * kHeads * kDim, 4);
  const std::vector<float> k = random_floats(kQueries * kDim, 5);
  const std::vector<float> v = random_floats(kQueries * kValueDim, 6);
  std::vector<float> choice = random_floats(kQueries * kQueries, 7);
  IndexerArguments chooser;
  chooser.queries = chooser.keys = kQueries;
  choose_keys(chooser, 2, choice.data());
  AttentionArguments args;
  args.heads = kHeads;
  args.kv_heads = 1;
  args.head_dim = kDim;
  args.value_head_dim = kValueDim;
  args.queries = args.keys = kQueries;
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.q_stride = kHeads * kDim;
  args.k_stride = kDim;
  args.v_stride = kValueDim;
  args.out_stride = kHeads * kValueDim;
  args.scale = 0.3F;
  args.causal = true;
  args.choice = choice.data();
  std::vector<float> scores(kHeads * kQueries * kQueries);
  std::vector<float> eager(kQueries * kHeads * kValueDim);
  args.out = eager.data();
  (void)attention_scores(args, scores.data());
  attention_softmax(args, scores.data());
  (void)attention_context(args, scores.data());
  std::vector<float> sparse(eager.size());
  args.out = sparse.data();
  std::vector<float> memory(
      IndexerCase::index(sparse_attention_scratch_floats(args, omp_get_max_threads())));
  // The first query sees one key, the others two.
  CHECK(sparse_attention(args, memory.data()) ==
        std::int64_t{2} * kHeads * (1 + 2 * (kQueries - 1)) * (kDim + kValueDim));
  for (std::size_t i = 0; i < eager.size(); ++i) {
    CHECK(static_cast<double>(sparse[i]) ==
          doctest::Approx(static_cast<double>(eager[i])).epsilon(1e-5));
  }
}
