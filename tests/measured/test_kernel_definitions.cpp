// Kernels against their definitions in double precision, on a scalar that counts operations: latent
// attention's products, streams of hyper-connections, time mixing of RWKV, and WavLM's gated bias.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "definitions.h"
#include "gated_bias.h"
#include "headroom/op.h"
#include "hyper_connections.h"
#include "latent.h"
#include "time_mix.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

/// Four heads of 21 and 5 dimensions, 19 of values, and a latent of 37, for 7 rows.
constexpr LatentArguments kLatent{7, 4, 21, 5, 19, 37};
constexpr std::int64_t kExpanded = kLatent.nope_dim + kLatent.value_dim;
constexpr std::int64_t kHeadDim = kLatent.nope_dim + kLatent.rope_dim;

/// RWKV's state of 2 sequences, 3 heads of 9 keys and 21 values, 4 positions.
struct MixCase {
  explicit MixCase(StateUpdate update) {
    args.update = update;
    args.batch = 2;
    args.seq_len = 4;
    args.heads = 3;
    args.key_dim = 9;
    args.value_dim = 21;
    const std::int64_t rows = args.batch * args.seq_len;
    const std::int64_t keys = args.heads * args.key_dim;
    receptance = random_floats(rows * keys, 1);
    key = random_floats(rows * keys, 2);
    value = random_floats(rows * args.heads * args.value_dim, 3);
    decay = random_floats(rows * keys, 4);
    rate = random_floats(rows * keys, 5);
    first = random_floats(keys, 6);
    second = random_floats(keys, 7);
    state = zeros(args.batch * keys * args.value_dim);
    out = zeros(std::ssize(value));
    scratch = zeros(args.scratch_floats());
    args.receptance = receptance.data();
    args.key = key.data();
    args.value = value.data();
    args.decay = decay.data();
    args.rate = rate.data();
    args.first = first.data();
    args.second = second.data();
    args.state = state.data();
    args.out = out.data();
  }

  /// The key of one token and head times the removal, of length 1.
  [[nodiscard]] std::vector<double> removal(std::int64_t token_key, std::int64_t head_key) const {
    std::vector<double> vector;
    double squares = 0;
    for (std::int64_t i = 0; i < args.key_dim; ++i) {
      vector.push_back(at(key, token_key + i) * at(first, head_key + i));
      squares += vector.back() * vector.back();
    }
    for (double& element : vector) element /= std::sqrt(squares);
    return vector;
  }

  /// One step of the column `states` of a head's state (arXiv 2503.14456, eq. 7 to 17).
  [[nodiscard]] double replace(std::vector<CountingScalar>& states, std::int64_t token_key,
                               std::int64_t head_key, double v) const {
    const std::vector<double> unit = removal(token_key, head_key);
    const CountingScalar read = sum_of(args.key_dim, [&](std::int64_t i) {
      return states[static_cast<std::size_t>(i)] * unit[static_cast<std::size_t>(i)];
    });
    CountingScalar sum;
    for (std::int64_t i = 0; i < args.key_dim; ++i) {
      CountingScalar& element = states[static_cast<std::size_t>(i)];
      const double a = sigmoid(at(rate, token_key + i));
      element.scale(std::exp(-std::exp(-0.5) * sigmoid(at(decay, token_key + i))));
      element += times(-a * unit[static_cast<std::size_t>(i)], read.value());
      element += times(at(key, token_key + i) * (1 + (a - 1) * at(second, head_key + i)), v);
      sum += element * at(receptance, token_key + i);
    }
    return sum.value();
  }

  /// One step of a column that adds (arXiv 2404.05892, eq. 5).
  [[nodiscard]] double add(std::vector<CountingScalar>& states, std::int64_t token_key,
                           std::int64_t head_key, double v) const {
    CountingScalar sum;
    for (std::int64_t i = 0; i < args.key_dim; ++i) {
      CountingScalar& element = states[static_cast<std::size_t>(i)];
      const double k = at(key, token_key + i);
      const double own = at(second, head_key + i) * k * v;
      sum += CountingScalar(element.value() + own) * at(receptance, token_key + i);
      element.scale(std::exp(-std::exp(at(first, head_key + i))));
      element += times(k, v);
    }
    return sum.value();
  }

  [[nodiscard]] std::vector<double> recurrence() const {
    std::vector<double> outputs(out.size());
    const std::int64_t columns = args.heads * args.value_dim;
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t head_key = column / args.value_dim * args.key_dim;
      std::vector<CountingScalar> states;
      for (std::int64_t row = 0; row < args.batch * args.seq_len; ++row) {
        if (row % args.seq_len == 0) states.assign(static_cast<std::size_t>(args.key_dim), 0);
        const std::int64_t token_key = row * args.heads * args.key_dim + head_key;
        const double v = at(value, row * columns + column);
        outputs[static_cast<std::size_t>(row * columns + column)] =
            args.update == StateUpdate::addition ? add(states, token_key, head_key, v)
                                                 : replace(states, token_key, head_key, v);
      }
    }
    return outputs;
  }

  std::vector<float> receptance, key, value, decay, rate, first, second, state, out, scratch;
  TimeMixArguments args;
};

}  // namespace

TEST_CASE("queries take in their heads' part of the latent's weight, and keep their rotary part") {
  const std::vector<float> weight =
      random_floats(kLatent.heads * kExpanded * kLatent.latent_dim, 1);
  const std::vector<float> queries = random_floats(kLatent.rows * kLatent.heads * kHeadDim, 2);
  std::vector<double> expected;
  (void)CountingScalar::take_operations();
  for (std::int64_t i = 0; i < kLatent.rows * kLatent.heads; ++i) {
    const std::int64_t rows = i % kLatent.heads * kExpanded;
    for (std::int64_t j = 0; j < kLatent.latent_dim; ++j) {
      expected.push_back(sum_of(kLatent.nope_dim, [&](std::int64_t k) {
                           return times(at(queries, i * kHeadDim + k),
                                        at(weight, (rows + k) * kLatent.latent_dim + j));
                         }).value());
    }
    for (std::int64_t k = kLatent.nope_dim; k < kHeadDim; ++k) {
      expected.push_back(at(queries, i * kHeadDim + k));
    }
  }
  std::vector<float> out(expected.size());
  const std::int64_t flops = queries_to_latent(kLatent, weight.data(), queries.data(), out.data());
  check_definition(out, flops, expected);
}

TEST_CASE("contexts of latents are projected by their heads' value rows") {
  const std::vector<float> weight =
      random_floats(kLatent.heads * kExpanded * kLatent.latent_dim, 1);
  const std::vector<float> contexts =
      random_floats(kLatent.rows * kLatent.heads * kLatent.latent_dim, 2);
  std::vector<double> expected;
  (void)CountingScalar::take_operations();
  for (std::int64_t i = 0; i < kLatent.rows * kLatent.heads; ++i) {
    for (std::int64_t j = 0; j < kLatent.value_dim; ++j) {
      const std::int64_t row = i % kLatent.heads * kExpanded + kLatent.nope_dim + j;
      expected.push_back(sum_of(kLatent.latent_dim, [&](std::int64_t k) {
                           return times(at(contexts, i * kLatent.latent_dim + k),
                                        at(weight, row * kLatent.latent_dim + k));
                         }).value());
    }
  }
  std::vector<float> out(expected.size());
  const std::int64_t flops =
      contexts_from_latent(kLatent, weight.data(), contexts.data(), out.data());
  check_definition(out, flops, expected);
}

TEST_CASE("residual streams are mixed by a matrix of each token, and take its share of a branch") {
  constexpr Streams kStreams{3, 4, 21};
  constexpr std::int64_t kStride = 2 * 4 + 4 * 4;
  const std::vector<float> weights = random_floats(kStreams.rows * kStride, 1);
  const std::vector<float> branch = random_floats(kStreams.rows * kStreams.width, 2);
  std::vector<float> x = random_floats(kStreams.rows * kStreams.streams * kStreams.width, 3);
  std::vector<double> expected;
  (void)CountingScalar::take_operations();
  for (std::int64_t row = 0; row < kStreams.rows; ++row) {
    for (std::int64_t k = 0; k < kStreams.streams; ++k) {
      for (std::int64_t i = 0; i < kStreams.width; ++i) {
        const CountingScalar mixed = sum_of(kStreams.streams, [&](std::int64_t j) {
          const std::int64_t element = 2 * kStreams.streams + j * kStreams.streams + k;
          return times(at(weights, row * kStride + element),
                       at(x, (row * kStreams.streams + j) * kStreams.width + i));
        });
        expected.push_back(mixed.value() + at(weights, row * kStride + kStreams.streams + k) *
                                               at(branch, row * kStreams.width + i));
      }
    }
  }
  const std::int64_t flops =
      update_streams(kStreams, weights.data(), kStride, branch.data(), x.data());
  check_definition(x, flops, expected);
}

TEST_CASE("independent streams each add a sublayer's output times a weight of their own") {
  constexpr Streams kStreams{3, 4, 21};
  constexpr std::int64_t kStride = 2 * kStreams.streams;
  const std::vector<float> weights = random_floats(kStreams.rows * kStride, 1);
  const std::vector<float> branch = random_floats(kStreams.rows * kStreams.width, 2);
  std::vector<float> x = random_floats(kStreams.rows * kStreams.streams * kStreams.width, 3);
  const std::vector<float> before = x;
  add_to_streams(kStreams, weights.data(), kStride, branch.data(), x.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t row = at / (kStreams.streams * kStreams.width);
    const std::int64_t stream = at / kStreams.width % kStreams.streams;
    const auto weight = static_cast<std::size_t>(row * kStride + kStreams.streams + stream);
    const auto value = static_cast<std::size_t>(row * kStreams.width + at % kStreams.width);
    CHECK(x[i] ==
          doctest::Approx(static_cast<double>(before[i]) + static_cast<double>(weights[weight]) *
                                                               static_cast<double>(branch[value])));
  }
}

TEST_CASE("attention over streams sums them by the softmax of their normalised products") {
  constexpr std::int64_t kCount = 3;
  AttendArguments args{.rows = 5, .width = 21, .eps = 1e-6F};
  std::vector<std::vector<float>> streams;
  for (unsigned seed = 0; seed < kCount; ++seed) {
    streams.push_back(random_floats(args.rows * args.width, seed));
    args.streams.push_back(streams.back().data());
  }
  const std::vector<float> norm = random_floats(args.width, 8);
  const std::vector<float> projection = random_floats(args.width, 9);
  args.norm = norm.data();
  args.projection = projection.data();
  std::vector<double> expected;
  (void)CountingScalar::take_operations();
  for (std::int64_t row = 0; row < args.rows; ++row) {
    std::vector<double> shares;
    double total = 0;
    for (const std::vector<float>& stream : streams) {
      double score = 0;
      double squares = 0;
      for (std::int64_t i = 0; i < args.width; ++i) {
        const double element = at(stream, row * args.width + i);
        score += at(norm, i) * at(projection, i) * element;
        squares += element * element;
      }
      const double mean = squares / static_cast<double>(args.width);
      shares.push_back(std::exp(score / std::sqrt(mean + 1e-6)));
      total += shares.back();
    }
    for (std::int64_t i = 0; i < args.width; ++i) {
      expected.push_back(sum_of(kCount, [&](std::int64_t j) {
                           return times(
                               shares[static_cast<std::size_t>(j)] / total,
                               at(streams[static_cast<std::size_t>(j)], row * args.width + i));
                         }).value());
    }
  }
  std::vector<float> out(expected.size());
  check_definition(out, attend_streams(args, out.data()), expected);
}

TEST_CASE("time mixing equals its recurrence, whose multiply-adds it counts") {
  for (const StateUpdate update : {StateUpdate::addition, StateUpdate::two_vectors}) {
    MixCase one(update);
    const std::int64_t flops = time_mix(one.args, one.scratch.data());
    (void)CountingScalar::take_operations();
    const std::vector<double> expected = one.recurrence();
    check_definition(one.out, flops, expected);
  }
}

TEST_CASE("WavLM's position biases are scaled by two gates of the query, whose products count") {
  GatedBiasArguments args{.batch = 2, .heads = 3, .head_dim = 21, .tokens = 5};
  constexpr std::int64_t kValues = GatedPositionBias::kValues;
  const std::int64_t rows = args.batch * args.tokens * args.heads;
  const std::vector<float> input = random_floats(rows * args.head_dim, 1);
  const std::vector<float> bias = random_floats(args.heads * args.tokens * args.tokens, 2);
  const std::vector<float> weight = random_floats(kValues * args.head_dim, 3);
  const std::vector<float> weight_bias = random_floats(kValues, 4);
  const std::vector<float> scale = random_floats(args.heads, 5);
  args.input = input.data();
  args.bias = bias.data();
  args.weight = weight.data();
  args.weight_bias = weight_bias.data();
  args.scale = scale.data();
  std::vector<double> expected(static_cast<std::size_t>(rows * args.tokens));
  (void)CountingScalar::take_operations();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = row % args.heads;
    const std::int64_t query = row / args.heads % args.tokens;
    const std::int64_t sequence = row / args.heads / args.tokens;
    double gates[2] = {};
    for (std::int64_t value = 0; value < kValues; ++value) {
      const CountingScalar product = sum_of(args.head_dim, [&](std::int64_t i) {
        return times(at(input, row * args.head_dim + i), at(weight, value * args.head_dim + i));
      });
      gates[value * 2 / kValues] += product.value() + at(weight_bias, value);
    }
    const double factor = sigmoid(gates[0]) * (sigmoid(gates[1]) * at(scale, head) - 1) + 2;
    for (std::int64_t key = 0; key < args.tokens; ++key) {
      const std::int64_t place = (sequence * args.heads + head) * args.tokens + query;
      expected[static_cast<std::size_t>(place * args.tokens + key)] =
          factor * at(bias, (head * args.tokens + query) * args.tokens + key);
    }
  }
  std::vector<float> out(expected.size());
  check_definition(out, gated_position_bias(args, out.data()), expected);
}
