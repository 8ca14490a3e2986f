// Eager and fused attention against a double-precision loop, and against each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "alibi.h"
#include "attention.h"
#include "attention_split.h"
#include "bfloat16.h"
#include "counting_scalar.h"
#include "kernel_data.h"
#include "softmax.h"

using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

enum class CaseBias { none, relative };
enum class CasePadding { none, some, whole_sequence };

struct AttentionCase {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t value_head_dim = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  bool causal = false;
  std::int64_t past = 0;
  CaseBias bias = CaseBias::none;
  CasePadding padding = CasePadding::none;
};

/// SoftmaxOperands of a case. Rows are wider than their heads, as in a stacked projection.
struct SoftmaxOperands {
  static constexpr std::int64_t kGap = 5;

  explicit SoftmaxOperands(const AttentionCase& c) {
    args.batch = c.batch;
    args.heads = c.heads;
    args.kv_heads = c.kv_heads;
    args.head_dim = c.head_dim;
    args.value_head_dim = c.value_head_dim;
    args.queries = c.queries;
    args.keys = c.keys;
    args.scale = 0.7F;
    args.causal = c.causal;
    args.past = c.past;
    set_strides();
    fill(c);
  }

  void set_strides() {
    args.q_stride = args.heads * args.head_dim + kGap;
    args.k_stride = args.kv_heads * args.head_dim + kGap;
    args.v_stride = args.kv_heads * args.value_head_dim;
    args.out_stride = args.heads * args.value_head_dim;
    args.k_head_stride = args.head_dim;
    args.v_head_stride = args.value_head_dim;
    args.q_batch_stride = args.queries * args.q_stride;
    args.k_batch_stride = args.keys * args.k_stride + kGap;
    args.v_batch_stride = args.keys * args.v_stride;
    args.out_batch_stride = args.queries * args.out_stride;
  }

  void fill(const AttentionCase& c) {
    q = random_floats(args.batch * args.q_batch_stride, 1);
    k = random_floats(args.batch * args.k_batch_stride, 2);
    v = random_floats(args.batch * args.v_batch_stride, 3);
    out.assign(static_cast<std::size_t>(args.batch * args.out_batch_stride), 0.0F);
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.out = out.data();
    if (c.bias == CaseBias::relative) {
      bias = random_floats(args.heads * args.queries * args.keys, 4);
      args.bias = bias.data();
    }
    if (c.padding == CasePadding::none) return;
    // CasePadding on the left, as in generation: the first queries see only padding.
    mask.assign(static_cast<std::size_t>(args.batch * args.keys), 1);
    const bool whole = c.padding == CasePadding::whole_sequence;
    std::fill_n(mask.begin(), whole ? args.keys : (args.keys + 2) / 3, std::uint8_t{0});
    args.key_mask = mask.data();
  }

  AttentionArguments args;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> out;
  std::vector<float> bias;
  std::vector<std::uint8_t> mask;
};

double exact_dot(const float* a, const float* b, std::int64_t count) {
  CountingScalar sum;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += CountingScalar(static_cast<double>(a[i])) * static_cast<double>(b[i]);
  }
  return sum.value();
}

/// Probabilities of one query, as in Hugging Face's eager attention: masked scores become the
/// lowest float32, whatever they were.
std::vector<double> exact_probabilities(const AttentionArguments& args, std::int64_t batch,
                                        std::int64_t head, std::int64_t query) {
  const std::int64_t kv_head = head * args.kv_heads / args.heads;
  const float* q = args.q + batch * args.q_batch_stride + query * args.q_stride;
  std::vector<double> row;
  for (std::int64_t key = 0; key < args.keys; ++key) {
    const float* k = args.k + batch * args.k_batch_stride + key * args.k_stride;
    double score =
        static_cast<double>(args.scale) *
        exact_dot(q + head * args.head_dim, k + kv_head * args.k_head_stride, args.head_dim);
    if (args.bias != nullptr) {
      score += static_cast<double>(args.bias[(head * args.queries + query) * args.keys + key]);
    }
    const bool masked = (args.causal && key > args.past + query) ||
                        (args.key_mask != nullptr && args.key_mask[batch * args.keys + key] == 0);
    row.push_back(masked ? -3.4028234663852886e38 : score);
  }
  const double maximum = *std::ranges::max_element(row);
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - maximum);
  for (double& value : row) value /= sum;
  return row;
}

std::vector<double> exact_attention(const AttentionArguments& args) {
  std::vector<double> out;
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    for (std::int64_t query = 0; query < args.queries; ++query) {
      for (std::int64_t head = 0; head < args.heads; ++head) {
        const std::vector<double> row = exact_probabilities(args, batch, head, query);
        const float* v = args.v + batch * args.v_batch_stride +
                         head * args.kv_heads / args.heads * args.v_head_stride;
        for (std::int64_t i = 0; i < args.value_head_dim; ++i) {
          CountingScalar sum;
          for (std::int64_t key = 0; key < args.keys; ++key) {
            sum += CountingScalar(row[static_cast<std::size_t>(key)]) *
                   static_cast<double>(v[key * args.v_stride + i]);
          }
          out.push_back(sum.value());
        }
      }
    }
  }
  return out;
}

/// Operations of the definition's products over the pairs that causality leaves.
std::int64_t operations_over_visible_pairs(const AttentionArguments& args) {
  (void)CountingScalar::take_operations();
  std::vector<CountingScalar> context(static_cast<std::size_t>(args.value_head_dim));
  for (std::int64_t head = 0; head < args.batch * args.heads; ++head) {
    for (std::int64_t query = 0; query < args.queries; ++query) {
      for (std::int64_t key = 0; key < args.keys; ++key) {
        if (args.causal && key > args.past + query) continue;
        const CountingScalar weight = exact_dot(args.q, args.k, args.head_dim);
        for (CountingScalar& sum : context) sum += weight * CountingScalar(1);
      }
    }
  }
  return CountingScalar::take_operations();
}

std::vector<float> run_eager(SoftmaxOperands& operands) {
  const AttentionArguments& args = operands.args;
  const std::int64_t pairs = args.batch * args.heads * args.queries * args.keys;
  std::vector<float> scores(static_cast<std::size_t>(pairs));
  std::int64_t flops = attention_scores(args, scores.data());
  attention_softmax(args, scores.data());
  flops += attention_context(args, scores.data());
  (void)CountingScalar::take_operations();
  (void)exact_attention(args);
  CHECK(flops == CountingScalar::take_operations());
  return operands.out;
}

std::vector<float> run_fused(SoftmaxOperands& operands) {
  const AttentionArguments& args = operands.args;
  const std::int64_t floats = fused_attention_scratch_floats(args, omp_get_max_threads());
  std::vector<float> scratch(static_cast<std::size_t>(floats), NAN);
  CHECK(fused_attention(args, scratch.data()) == operations_over_visible_pairs(args));
  return operands.out;
}

const std::vector<AttentionCase> kAttentionCases{
    {},
    {2, 3, 3, 17, 17, 33, 33},
    {1, 2, 2, 64, 64, 100, 100},
    {1, 1, 1, 80, 40, 70, 129},
    {2, 4, 4, 20, 33, 3, 64},
    {1, 2, 1, 200, 7, 65, 66},
    // Larger than each block size (transposed, packed, processed at once), with a remainder.
    {1, 2, 1, 600, 130, 140, 150, true, 10},
    {2, 3, 3, 16, 16, 33, 33, true},
    {1, 4, 2, 64, 64, 130, 130, true},
    {1, 8, 2, 32, 24, 1, 100, true, 99},
    {2, 6, 2, 48, 48, 17, 100, true, 83},
    {1, 3, 1, 8, 8, 100, 200, true, 3},
    {2, 4, 4, 16, 16, 40, 70, false, 0, CaseBias::relative},
    {2, 3, 3, 40, 17, 1, 129, true, 128},
    {2, 2, 1, 64, 64, 2, 200, true, 100, CaseBias::relative, CasePadding::some},
    {2, 3, 1, 20, 80, 1, 70, true, 3, CaseBias::none, CasePadding::whole_sequence},
    {2, 4, 2, 16, 16, 40, 70, true, 30, CaseBias::relative},
    {2, 2, 2, 24, 24, 50, 50, false, 0, CaseBias::none, CasePadding::some},
    {2, 4, 2, 24, 24, 70, 70, true, 0, CaseBias::none, CasePadding::some},
    {2, 2, 1, 24, 24, 50, 50, false, 0, CaseBias::relative, CasePadding::whole_sequence},
    {2, 2, 1, 24, 40, 9, 150, true, 20, CaseBias::relative, CasePadding::whole_sequence},
};

/// Rounding error of a score, which grows with the square root of the number of terms.
double attention_tolerance(const AttentionCase& c) {
  return 4e-6 * std::sqrt(std::max(1.0, static_cast<double>(c.head_dim) / 200));
}

}  // namespace

TEST_CASE("eager attention equals its definition") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (std::size_t i = 0; i < kAttentionCases.size(); ++i) {
      CAPTURE(i);
      SoftmaxOperands operands(kAttentionCases[i]);
      CHECK(largest_error(run_eager(operands), exact_attention(operands.args)) <
            attention_tolerance(kAttentionCases[i]));
    }
  }
}

TEST_CASE("fused attention equals its definition") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (std::size_t i = 0; i < kAttentionCases.size(); ++i) {
      CAPTURE(i);
      SoftmaxOperands operands(kAttentionCases[i]);
      CHECK(largest_error(run_fused(operands), exact_attention(operands.args)) <
            attention_tolerance(kAttentionCases[i]));
    }
  }
}

TEST_CASE("fused attention shares out the keys of a head that several threads read") {
  const AttentionCase cases[] = {
      {1, 1, 1, 64, 64, 1, 515},               // a part has a tile of three keys
      {1, 4, 1, 40, 33, 1, 700, true, 699},    // one KV head, as in multi-query attention
      {1, 9, 1, 16, 16, 1, 600},               // lanes in three groups
      {1, 6, 3, 24, 24, 2, 1100, true, 1098},  // the queries see different keys
      {2, 2, 1, 32, 32, 1, 1030, false, 0, CaseBias::relative},
      {2, 2, 1, 32, 32, 1, 1030, true, 1029, CaseBias::none, CasePadding::some},
      {2, 2, 1, 32, 32, 1, 1030, false, 0, CaseBias::none, CasePadding::whole_sequence}};
  for (const int threads : {1, 2, 4, 7}) {
    const Threads scope(threads);
    for (const AttentionCase& c : cases) {
      CAPTURE(threads);
      CAPTURE(c.keys);
      SoftmaxOperands operands(c);
      const std::vector<float> out = run_fused(operands);
      CHECK(largest_error(out, exact_attention(operands.args), 1.0) < 1e-5);
    }
  }
  const AttentionCase one{1, 4, 1, 64, 64, 1, 4096};
  const std::vector<float> sinks{6, 0, -3, 9};
  const auto with_sinks = [&](int threads) {
    const Threads scope(threads);
    SoftmaxOperands operands(one);
    operands.args.sinks = sinks.data();
    return run_fused(operands);
  };
  const std::vector<float> whole = with_sinks(1);
  CHECK(largest_error(with_sinks(4), {whole.begin(), whole.end()}) < 1e-5);
  CHECK(key_parts(SoftmaxOperands(one).args, 1) == 1);
  CHECK(key_parts(SoftmaxOperands(one).args, 4) == 4);
  CHECK(key_parts(SoftmaxOperands(one).args, 128) == 16);  // of 256 keys each
  const AttentionCase few{1, 4, 1, 64, 64, 1, 300};
  CHECK(key_parts(SoftmaxOperands(few).args, 4) == 1);
  const AttentionCase heads{1, 8, 8, 64, 64, 1, 4096};
  CHECK(key_parts(SoftmaxOperands(heads).args, 8) == 1);
}

TEST_CASE("attention reads a cache that stores keys and values head by head") {
  for (const std::int64_t queries : {1, 30}) {
    SoftmaxOperands operands({2, 4, 2, 16, 24, queries, 60, true, 60 - queries});
    AttentionArguments& args = operands.args;
    constexpr std::int64_t kCapacity = 64;
    const std::vector<float> k = random_floats(2 * 2 * kCapacity * 16, 5);
    const std::vector<float> v = random_floats(2 * 2 * kCapacity * 24, 6);
    args.k = k.data();
    args.v = v.data();
    args.k_stride = 16;
    args.v_stride = 24;
    args.k_head_stride = kCapacity * 16;
    args.v_head_stride = kCapacity * 24;
    args.k_batch_stride = 2 * args.k_head_stride;
    args.v_batch_stride = 2 * args.v_head_stride;
    const std::vector<double> expected = exact_attention(args);
    CHECK(largest_error(run_eager(operands), expected) < 4e-6);
    CHECK(largest_error(run_fused(operands), expected) < 4e-6);
  }
}

TEST_CASE(
    "fused attention equals eager attention for scores that would overflow without a maximum") {
  SoftmaxOperands operands({1, 2, 2, 32, 32, 80, 80, true});
  operands.args.scale = 90.0F;
  const std::vector<float> eager = run_eager(operands);
  CHECK(largest_error(run_fused(operands), widened(eager)) < 1e-4);
}

TEST_CASE("softmax of rows equals its definition") {
  for (const std::int64_t keys : {1, 3, 16, 17, 33, 64, 100, 1000}) {
    std::vector<float> scores = random_floats(5 * keys, 1, 20.0F);
    std::vector<double> expected = widened(scores);
    for (auto row = expected.begin(); row != expected.end(); row += keys) {
      double sum = 0;
      std::for_each(row, row + keys, [&](double& x) { sum += x = std::exp(x); });
      std::for_each(row, row + keys, [&](double& x) { x /= sum; });
    }
    softmax_rows(scores.data(), 5, keys);
    CHECK(largest_error(scores, expected, 1e-6) < 2e-6);
  }
}

TEST_CASE(
    "ALiBi slopes fall by powers of two, and are rounded where the exact_attention rounds them") {
  headroom::AlibiSpec alibi{headroom::AlibiKind::power_above};
  alibi.steepest = 16;
  CHECK(alibi_slopes(alibi, 4) ==
        std::vector<float>{1.0F / 16, 1.0F / 256, 1.0F / 4096, 1.0F / 65536});
  const headroom::AlibiSpec rounded{headroom::AlibiKind::power_below,
                                    headroom::AlibiOrder::rounded_before_scale};
  CHECK(alibi_slopes(rounded, 16).front() == 0.70703125F);  // 2^-0.5 = 0.70710678, rounded
  // Ties go to the even neighbour: 1 + 2^-8 lies between 1 and 1 + 2^-7, 1 + 3·2^-8 lies below 1 +
  // 2^-6.
  CHECK(round_to_bfloat16(1.00390625F) == 1.0F);
  CHECK(round_to_bfloat16(1.01171875F) == 1.015625F);
}
