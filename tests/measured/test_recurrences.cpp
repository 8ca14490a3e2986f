// Kernels of recurrences against their closed forms in double precision: RG-LRU (arXiv 2402.19427,
// eq. 1 to 4), WKV (arXiv 2305.13048, eq. 16), the delta rule with one decay per key dimension
// (arXiv 2510.26692, eq. 1), and alternating updates (arXiv 2301.13310).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "altup.h"
#include "counting_scalar.h"
#include "golden_values.h"
#include "kernel_data.h"
#include "linear_recurrence.h"
#include "state_kernels.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

double softplus(double x) { return std::log1p(std::exp(x)); }

/// RG-LRU of 2 sequences of 19 positions, 3 heads of 21: more than one vector of any machine and
/// than the positions whose gates are projected together, and a part of both.
struct GatedCase {
  GatedCase() {
    args.batch = 2;
    args.seq_len = 19;
    args.heads = 3;
    args.head_dim = 21;
    const std::int64_t blocks = args.width() * args.head_dim;
    x = random_floats(args.batch * args.seq_len * args.width(), 1);
    input = random_floats(blocks, 2);
    input_bias = random_floats(args.width(), 3);
    recurrent = random_floats(blocks, 4);
    recurrent_bias = random_floats(args.width(), 5);
    decay = random_floats(args.width(), 6);
    state = zeros(args.batch * args.width());
    out = zeros(std::ssize(x));
    scratch = zeros(args.scratch_floats());
    args.x = x.data();
    args.input_gate = input.data();
    args.input_gate_bias = input_bias.data();
    args.recurrent_gate = recurrent.data();
    args.recurrent_gate_bias = recurrent_bias.data();
    args.decay = decay.data();
    args.state = state.data();
    args.out = out.data();
  }

  [[nodiscard]] double gate(const std::vector<float>& weight, const std::vector<float>& bias,
                            std::int64_t row, std::int64_t channel) const {
    const std::int64_t dim = args.head_dim;
    const std::int64_t head = channel / dim;
    CountingScalar sum = at(bias, channel);
    for (std::int64_t i = 0; i < dim; ++i) {
      sum += CountingScalar(at(x, row * args.width() + head * dim + i)) *
             at(weight, (head * dim + i) * dim + channel % dim);
    }
    return sigmoid(sum.value());
  }

  /// Operations of both gates of all rows and channels.
  [[nodiscard]] std::int64_t gate_operations() const {
    (void)CountingScalar::take_operations();
    for (std::int64_t row = 0; row < args.batch * args.seq_len; ++row) {
      for (std::int64_t channel = 0; channel < args.width(); ++channel) {
        (void)gate(input, input_bias, row, channel);
        (void)gate(recurrent, recurrent_bias, row, channel);
      }
    }
    return CountingScalar::take_operations();
  }

  /// h_t as a sum over all positions: each gated input times the decays after it.
  [[nodiscard]] double expected(std::int64_t row, std::int64_t channel) const {
    const std::int64_t first = row / args.seq_len * args.seq_len;
    double sum = 0;
    double kept = 1;
    for (std::int64_t from = row; from >= first; --from) {
      const double a = from == first ? 0
                                     : std::exp(-8 * softplus(at(decay, channel)) *
                                                gate(recurrent, recurrent_bias, from, channel));
      sum += kept * std::sqrt(1 - a * a) * gate(input, input_bias, from, channel) *
             at(x, from * args.width() + channel);
      kept *= a;
    }
    return sum;
  }

  std::vector<float> x, input, input_bias, recurrent, recurrent_bias, decay, state, out, scratch;
  GatedRecurrenceArguments args;
};

}  // namespace

TEST_CASE("RG-LRU equals its sum over all positions, and counts its gates' multiply-adds") {
  GatedCase one;
  const std::int64_t flops = gated_linear_recurrence(one.args, one.scratch.data());
  const std::int64_t rows = one.args.batch * one.args.seq_len;
  CHECK(flops == one.gate_operations());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t channel = 0; channel < one.args.width(); ++channel) {
      CHECK(at(one.out, row * one.args.width() + channel) ==
            doctest::Approx(one.expected(row, channel)).epsilon(1e-4));
    }
  }
}

TEST_CASE("RG-LRU position by position equals one pass") {
  GatedCase whole;
  GatedCase steps;
  gated_linear_recurrence(whole.args, whole.scratch.data());
  // One sequence, since its positions follow each other.
  GatedRecurrenceArguments one = steps.args;
  one.batch = one.seq_len = 1;
  for (std::int64_t token = 0; token < steps.args.seq_len; ++token) {
    one.first_position = token;
    one.x = steps.x.data() + token * one.width();
    one.out = steps.out.data() + token * one.width();
    gated_linear_recurrence(one, steps.scratch.data());
  }
  // A compiler may fuse other multiply-adds where a kernel has one row.
  for (std::int64_t i = 0; i < steps.args.seq_len * steps.args.width(); ++i) {
    CHECK(at(steps.out, i) == doctest::Approx(at(whole.out, i)).epsilon(1e-5));
  }
}

TEST_CASE("WKV equals its ratio of sums over all positions") {
  WeightedKeyValueArguments args;
  args.batch = 2;
  args.seq_len = 9;
  args.width = 21;
  const std::int64_t count = args.batch * args.seq_len * args.width;
  const std::vector<float> key = random_floats(count, 1);
  const std::vector<float> value = random_floats(count, 2);
  const std::vector<float> decay = random_floats(args.width, 3);
  const std::vector<float> bonus = random_floats(args.width, 4);
  std::vector<float> state = zeros(args.batch * 3 * args.width);
  std::vector<float> out = zeros(count);
  args.key = key.data();
  args.value = value.data();
  args.decay = decay.data();
  args.bonus = bonus.data();
  args.state = state.data();
  args.out = out.data();
  weighted_key_value(args);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t channel = i % args.width;
    const std::int64_t token = i / args.width % args.seq_len;
    double weight = std::exp(at(bonus, channel) + at(key, i));
    double sum = weight * at(value, i);
    double total = weight;
    for (std::int64_t past = 1; past <= token; ++past) {
      const std::int64_t from = i - past * args.width;
      weight =
          std::exp(at(key, from) - static_cast<double>(past - 1) * std::exp(at(decay, channel)));
      sum += weight * at(value, from);
      total += weight;
    }
    CHECK(at(out, i) == doctest::Approx(sum / total).epsilon(1e-4));
  }
}

TEST_CASE("WKV stays finite with keys far beyond the largest exponential") {
  WeightedKeyValueArguments args;
  args.seq_len = 3;
  args.width = 1;
  const std::vector<float> key{500.0F, -500.0F, 500.0F};
  const std::vector<float> value{1.0F, 2.0F, 3.0F};
  const std::vector<float> zero{0.0F};
  std::vector<float> state = zeros(3);
  std::vector<float> out = zeros(3);
  args.key = key.data();
  args.value = value.data();
  args.decay = args.bonus = zero.data();
  args.state = state.data();
  args.out = out.data();
  weighted_key_value(args);
  CHECK(out[0] == 1.0F);
  CHECK(out[1] == 1.0F);
  // The first position's weight has decayed by exp(-1).
  CHECK(out[2] == doctest::Approx((std::exp(-1.0) + 3) / (std::exp(-1.0) + 1)).epsilon(1e-5));
}

TEST_CASE("a token shift returns the rows before, continues from its state and mixes by weights") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6};  // 3 positions of 2 channels
  std::vector<float> state{-1, -2};
  std::vector<float> out = zeros(6);
  token_shift({1, 3, 2, x.data(), state.data(), out.data()});
  CHECK(out == std::vector<float>{-1, -2, 1, 2, 3, 4});
  CHECK(state == std::vector<float>{5, 6});
  const std::vector<float> mu{0.25F, 1.0F};
  token_mix(x.data(), out.data(), mu.data(), out.data(), 3, 2);
  CHECK(out == std::vector<float>{-0.5F, 2, 1.5F, 4, 3.5F, 6});
}

TEST_CASE("rows side by side keep their order") {
  const std::vector<float> x{1, 2, 3, 4};
  const std::vector<float> y{5, 6};
  std::vector<float> out = zeros(6);
  concatenate_rows(x.data(), 2, y.data(), 1, out.data(), 2);
  CHECK(out == std::vector<float>{1, 2, 5, 3, 4, 6});
}

namespace {

/// A delta rule of one head, 21 key and 70 value dimensions, 6 positions.
struct DeltaCase {
  explicit DeltaCase(DeltaDecay decay) {
    args.seq_len = 6;
    args.key_heads = args.heads = 1;
    args.key_dim = 21;
    args.value_dim = 70;
    args.decay = decay;
    const std::int64_t alphas = decay == DeltaDecay::each_head ? 1 : args.key_dim;
    query = random_floats(args.seq_len * args.key_dim, 1);
    key = random_floats(args.seq_len * args.key_dim, 2);
    value = random_floats(args.seq_len * args.value_dim, 3);
    beta = random_floats(args.seq_len, 4);
    alpha = random_floats(args.seq_len * alphas, 5);
    bias = random_floats(alphas, 6);
    a_log = random_floats(1, 7);
    state = zeros(args.key_dim * args.value_dim);
    out = zeros(args.seq_len * args.value_dim);
    scratch = zeros(args.scratch_floats());
    args.query = {query.data(), args.key_dim};
    args.key = {key.data(), args.key_dim};
    args.value = {value.data(), args.value_dim};
    args.beta = {beta.data(), 1};
    args.alpha = {alpha.data(), alphas};
    args.dt_bias = bias.data();
    args.a_log = a_log.data();
    args.state = state.data();
    args.out = out.data();
  }

  /// Unit vector of one token's query or key.
  [[nodiscard]] std::vector<double> unit(const std::vector<float>& rows, std::int64_t token) const {
    std::vector<double> vector;
    double squares = 1e-6;
    for (std::int64_t i = 0; i < args.key_dim; ++i) {
      vector.push_back(at(rows, token * args.key_dim + i));
      squares += vector.back() * vector.back();
    }
    for (double& element : vector) element /= std::sqrt(squares);
    return vector;
  }

  [[nodiscard]] double decayed(std::int64_t token, std::int64_t i) const {
    const std::int64_t dims = std::ssize(bias);
    const double step = softplus(at(alpha, token * dims + i % dims) + at(bias, i % dims));
    return std::exp(-std::exp(at(a_log, 0)) * step);
  }

  /// Outputs with S_t = (I - β·k·kᵀ)·diag(exp(g))·S_{t-1} + β·k·vᵀ, column by column of S.
  [[nodiscard]] std::vector<double> matrix_form() const {
    const auto dims = static_cast<std::size_t>(args.key_dim);
    std::vector<double> outputs(out.size());
    for (std::int64_t column = 0; column < args.value_dim; ++column) {
      std::vector<CountingScalar> s(dims);
      for (std::int64_t token = 0; token < args.seq_len; ++token) {
        const std::vector<double> k = unit(key, token);
        const std::vector<double> q = unit(query, token);
        const std::int64_t place = token * args.value_dim + column;
        CountingScalar read;
        for (std::size_t i = 0; i < dims; ++i) {
          s[i].scale(decayed(token, static_cast<std::int64_t>(i)));
          read += s[i] * k[i];
        }
        const double strength = static_cast<double>(args.strength) * sigmoid(at(beta, token));
        const CountingScalar change = strength * (at(value, place) - read.value());
        CountingScalar sum;
        for (std::size_t i = 0; i < dims; ++i) {
          s[i] += change * k[i];
          sum += s[i] * q[i];
        }
        outputs[static_cast<std::size_t>(place)] =
            sum.value() / std::sqrt(static_cast<double>(args.key_dim));
      }
    }
    return outputs;
  }

  std::vector<float> query, key, value, beta, alpha, bias, a_log, state, out, scratch;
  GatedDeltaArguments args;
};

}  // namespace

TEST_CASE("a delta rule equals its matrix form, and counts three products with its state") {
  for (const DeltaDecay decay : {DeltaDecay::each_head, DeltaDecay::each_key_dim}) {
    DeltaCase one(decay);
    one.args.strength = 2;
    const std::int64_t flops = gated_delta(one.args, one.scratch.data());
    (void)CountingScalar::take_operations();
    CHECK(largest_error(one.out, one.matrix_form()) < 1e-4);
    CHECK(flops == CountingScalar::take_operations());
  }
}

TEST_CASE("equal decays of all key dimensions are one decay per head") {
  DeltaCase head(DeltaDecay::each_head);
  DeltaCase each(DeltaDecay::each_key_dim);
  for (std::size_t i = 0; i < each.alpha.size(); ++i) {
    each.alpha[i] = head.alpha[i / static_cast<std::size_t>(each.args.key_dim)];
  }
  std::ranges::fill(each.bias, head.bias.front());
  gated_delta(head.args, head.scratch.data());
  gated_delta(each.args, each.scratch.data());
  CHECK(head.out == each.out);
}

TEST_CASE("streams of alternating updates are stacked at equal lengths and merged to their mean") {
  const std::vector<float> first{3, 4, 0, 0};  // two rows of length 5 and 0
  const std::vector<float> second{0, 10, 6, 8};
  const AltUpArguments args{2, 2, 2, 0};
  std::vector<float> stacked = zeros(8);
  const std::vector<const float*> inputs{first.data(), second.data()};
  altup_stack(args, inputs, stacked.data());
  CHECK(error_over_tolerance(stacked, std::vector<float>{3, 4, 0, 0, 0, 5, 0, 0}) <= 1.0);
  std::vector<float> merged = zeros(4);
  altup_merge(args, inputs, merged.data());
  CHECK(error_over_tolerance(merged, std::vector<float>{1.5F, 4.5F, 0, 0}) <= 1.0);
}

TEST_CASE("alternating updates predict by mixtures of all streams and correct by the difference") {
  const AltUpArguments args{2, 1, 2, 1};
  const std::vector<float> streams{1, 2, 10, 20};
  const std::vector<float> mixture{0, 1, 0.5F, 0};  // of stream 0, then of stream 1
  std::vector<float> predicted = zeros(4);
  CHECK(altup_predict(args, streams.data(), mixture.data(), predicted.data()) == 2 * 2 * 2 * 2);
  CHECK(predicted == std::vector<float>{11, 22, 10.5F, 21});
  // The layer returned 11.5, 23 for stream 1: one more and two more than predicted.
  const std::vector<float> activated{11.5F, 23};
  const std::vector<float> factors{-1, 1};
  altup_correct(args, activated.data(), factors.data(), predicted.data());
  CHECK(predicted == std::vector<float>{11, 22, 12.5F, 25});
  const std::vector<float> added{100, 200};
  altup_spread(args, added.data(), predicted.data());
  CHECK(predicted == std::vector<float>{11, 22, 112.5F, 225});
}
