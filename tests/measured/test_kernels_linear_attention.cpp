// Linear attention against its quadratic form in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "headroom/attention_spec.h"
#include "kernel_data.h"
#include "linear_attention.h"

using headroom::FeatureMapKind;
using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

constexpr float kEps = 1e-6F;

/// LinearOperands: features, which are positive, and values.
struct LinearOperands {
  LinearOperands(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
                 std::int64_t value_head_dim, std::int64_t tokens, bool causal) {
    args.batch = 2;
    args.heads = heads;
    args.kv_heads = kv_heads;
    args.head_dim = head_dim;
    args.value_head_dim = value_head_dim;
    args.queries = args.keys = tokens;
    args.causal = causal;
    args.q_stride = heads * head_dim;
    args.k_stride = kv_heads * head_dim;
    args.v_stride = kv_heads * value_head_dim;
    args.out_stride = heads * value_head_dim;
    args.k_head_stride = head_dim;
    args.v_head_stride = value_head_dim;
    args.q_batch_stride = tokens * args.q_stride;
    args.k_batch_stride = tokens * args.k_stride;
    args.v_batch_stride = tokens * args.v_stride;
    args.out_batch_stride = tokens * args.out_stride;
    q = random_floats(2 * args.q_batch_stride, 1);
    k = random_floats(2 * args.k_batch_stride, 2);
    v = random_floats(2 * args.v_batch_stride, 3);
    out.resize(static_cast<std::size_t>(2 * args.out_batch_stride));
    constexpr auto kElu = FeatureMapKind::elu_plus_one;
    feature_map(kElu, {q.data(), 2 * tokens, heads, head_dim, args.q_stride});
    feature_map(kElu, {k.data(), 2 * tokens, kv_heads, head_dim, args.k_stride});
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.out = out.data();
  }

  void pad() {
    mask.assign(static_cast<std::size_t>(2 * args.keys), 1);
    for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = 0;
    args.key_mask = mask.data();
  }

  AttentionArguments args;
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;
  std::vector<float> out;
  std::vector<std::uint8_t> mask;
};

/// The quadratic form: φ(q)·φ(k) of every pair, normalised over the keys, times V.
std::vector<double> exact_linear_attention(const AttentionArguments& args) {
  std::vector<double> out;
  for (std::int64_t row = 0; row < args.batch * args.queries * args.heads; ++row) {
    const std::int64_t head = row % args.heads;
    const std::int64_t kv_head = head * args.kv_heads / args.heads;
    const std::int64_t query = row / args.heads % args.queries;
    const std::int64_t batch = row / args.heads / args.queries;
    std::vector<double> sums(static_cast<std::size_t>(args.value_head_dim));
    double total = static_cast<double>(kEps);
    for (std::int64_t key = 0; key < args.keys; ++key) {
      if (args.causal && key > query) continue;
      if (args.key_mask != nullptr && args.key_mask[batch * args.keys + key] == 0) continue;
      const float* q = args.q + batch * args.q_batch_stride + query * args.q_stride;
      const float* k = args.k + batch * args.k_batch_stride + key * args.k_stride;
      const float* v = args.v + batch * args.v_batch_stride + key * args.v_stride;
      double weight = 0;
      for (std::int64_t i = 0; i < args.head_dim; ++i) {
        weight += static_cast<double>(q[head * args.head_dim + i]) *
                  static_cast<double>(k[kv_head * args.head_dim + i]);
      }
      total += weight;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += weight * static_cast<double>(
                                v[kv_head * args.value_head_dim + static_cast<std::int64_t>(i)]);
      }
    }
    for (const double sum : sums) out.push_back(sum / total);
  }
  return out;
}

std::vector<float> empty_state(const AttentionArguments& args) {
  return std::vector<float>(static_cast<std::size_t>(linear_attention_state_floats(args)));
}

}  // namespace

TEST_CASE("feature maps change their heads in float64's way, and nothing between the rows") {
  constexpr std::int64_t kRows = 3;
  constexpr std::int64_t kHeads = 3;
  constexpr std::int64_t kHeadDim = 11;
  constexpr std::int64_t kStride = 40;  // 7 more than a row
  using Head = std::array<double, kHeadDim>;
  const auto each = [](Head& head, double (*function)(double)) {
    std::ranges::transform(head, head.begin(), function);
  };
  const auto mapped = [&](FeatureMapKind kind, Head head) {
    switch (kind) {
      case FeatureMapKind::elu_plus_one:
        each(head, [](double x) { return x > 0 ? x + 1 : std::exp(x); });
        break;
      case FeatureMapKind::relu:
        each(head, [](double x) { return std::max(x, 0.0); });
        break;
      case FeatureMapKind::exp:
        each(head, [](double x) { return std::exp(x); });
        break;
      case FeatureMapKind::softmax: {
        each(head, [](double x) { return std::exp(x); });
        const double sum = std::accumulate(head.begin(), head.end(), 0.0);
        for (double& x : head) x /= sum;
      }
    }
    return head;
  };
  for (const auto kind : {FeatureMapKind::elu_plus_one, FeatureMapKind::relu, FeatureMapKind::exp,
                          FeatureMapKind::softmax}) {
    CAPTURE(static_cast<int>(kind));
    std::vector<float> x = random_floats(kRows * kStride, 1, 9.0F);
    std::vector<double> expected = widened(x);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t head = 0; head < kHeads; ++head) {
        const auto at = expected.begin() + row * kStride + head * kHeadDim;
        Head values{};
        std::copy_n(at, kHeadDim, values.begin());
        std::ranges::copy(mapped(kind, values), at);
      }
    }
    feature_map(kind, {x.data(), kRows, kHeads, kHeadDim, kStride});
    // A softmax divides by a sum of exponentials.
    const double most = kind == FeatureMapKind::softmax ? 2e-6 : 1e-6;
    CHECK(largest_error(x, expected, 1e-9) < most);
  }
}

TEST_CASE("linear attention equals its quadratic form, causal or not, with or without padding") {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    for (const bool causal : {false, true}) {
      for (const bool padded : {false, true}) {
        for (const std::int64_t value_head_dim : {1, 17, 64, 100}) {
          CAPTURE(causal);
          CAPTURE(padded);
          LinearOperands operands(4, 2, 33, value_head_dim, 50, causal);
          if (padded) operands.pad();
          std::vector<float> state = empty_state(operands.args);
          const std::int64_t flops = linear_attention(operands.args, kEps, state.data());
          CHECK(flops == 2 * 50 * 2 * (2 * 33 * value_head_dim) +
                             2 * 50 * 4 * (2 * 33 * value_head_dim + 2 * 33));
          CHECK(largest_error(operands.out, exact_linear_attention(operands.args)) < 2e-6);
        }
      }
    }
  }
}

TEST_CASE("linear attention of more tokens than a block equals its quadratic form") {
  for (const bool causal : {false, true}) {
    for (const bool padded : {false, true}) {
      CAPTURE(causal);
      CAPTURE(padded);
      LinearOperands operands(4, 2, 24, 40, 300, causal);
      if (padded) operands.pad();
      std::vector<float> state = empty_state(operands.args);
      linear_attention(operands.args, kEps, state.data());
      CHECK(largest_error(operands.out, exact_linear_attention(operands.args)) < 4e-6);
    }
  }
}

TEST_CASE("causal linear attention carries its state from call to call") {
  LinearOperands operands(2, 2, 16, 24, 30, true);
  operands.pad();
  const AttentionArguments& whole = operands.args;
  std::vector<float> state = empty_state(whole);
  linear_attention(whole, kEps, state.data());
  const std::vector<float> at_once = operands.out;
  const std::vector<float> final_state = state;

  operands.out.assign(operands.out.size(), 0.0F);
  std::fill(state.begin(), state.end(), 0.0F);
  std::int64_t first = 0;
  for (const std::int64_t tokens : {7, 1, 1, 21}) {
    AttentionArguments part = whole;
    part.queries = part.keys = tokens;
    part.q += first * part.q_stride;
    part.k += first * part.k_stride;
    part.v += first * part.v_stride;
    part.out += first * part.out_stride;
    std::vector<std::uint8_t> mask;
    for (std::int64_t batch = 0; batch < 2; ++batch) {
      const auto begin = operands.mask.begin() + batch * whole.keys + first;
      mask.insert(mask.end(), begin, begin + tokens);
    }
    part.key_mask = mask.data();
    linear_attention(part, kEps, state.data());
    first += tokens;
  }
  CHECK(operands.out == at_once);
  CHECK(state == final_state);
}
