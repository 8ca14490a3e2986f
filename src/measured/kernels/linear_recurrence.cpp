#include "linear_recurrence.h"

#include <algorithm>
#include <cmath>

#include "lane_block.h"
#include "parallel.h"
#include "tile_multiply.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::kLanes;

Floats square_root(Floats x) {
  for (int i = 0; i < static_cast<int>(kLanes); ++i) x[i] = std::sqrt(x[i]);
  return x;
}

/// One head of an RG-LRU in one sequence, with the gates of some tokens before their sigmoids.
struct RecurrenceHead {
  const GatedRecurrenceArguments& args;
  std::int64_t item;
  std::int64_t head;
  float* input_gates;      ///< [tokens, head_dim]
  float* recurrent_gates;  ///< [tokens, head_dim]

  [[nodiscard]] std::int64_t first() const { return head * args.head_dim; }
  [[nodiscard]] std::int64_t row(std::int64_t token) const {
    return (item * args.seq_len + token) * args.width() + first();
  }
};

/// Gates of some tokens without their biases; returns the FLOPs.
std::int64_t project_gates(const RecurrenceHead& at, Range tokens) {
  const GatedRecurrenceArguments& args = at.args;
  const std::int64_t dim = args.head_dim;
  const TileLeft x{args.x + at.row(tokens.begin), args.width(), 1};
  const TileExtent extent{tokens.size(), dim, dim};
  const std::int64_t block = at.first() * dim;
  multiply(x, {args.input_gate + block, dim}, {at.input_gates, dim}, extent, Output::overwrite);
  multiply(x, {args.recurrent_gate + block, dim}, {at.recurrent_gates, dim}, extent,
           Output::overwrite);
  return std::int64_t{2} * 2 * tokens.size() * dim * dim;
}

/// Updates the state by a token, whose gates are number `gate` of those at hand.
void recur_token(const RecurrenceHead& at, std::int64_t token, std::int64_t gate) {
  constexpr float kDecayScale = -8.0F;  // arXiv 2402.19427, section 2.4
  const GatedRecurrenceArguments& args = at.args;
  const std::int64_t first = at.first();
  const std::int64_t gates = gate * args.head_dim;
  float* const state = args.state + at.item * args.width() + first;
  const bool starts = args.first_position + token == 0;
  for_lanes(args.head_dim, [&](const Lanes& some) {
    const Floats input =
        simd::sigmoid(some.load(at.input_gates + gates) + some.load(args.input_gate_bias + first));
    const Floats recurrent = simd::sigmoid(some.load(at.recurrent_gates + gates) +
                                           some.load(args.recurrent_gate_bias + first));
    const Floats log_decay =
        kDecayScale * recurrent * simd::softplus(some.load(args.decay + first));
    const Floats gated = some.load(args.x + at.row(token)) * input;
    const Floats rest = simd::max(Floats{}, 1.0F - simd::exp(2.0F * log_decay));
    const Floats next =
        starts ? gated : simd::exp(log_decay) * some.load(state) + square_root(rest) * gated;
    some.store(state, next);
    some.store(args.out + at.row(token), next);
  });
}

/// State of WKV of some channels, relative to exp(`exponent`).
struct KeyValueState {
  Floats numerator;
  Floats denominator;
  Floats exponent;

  /// Adds `value` with the weight exp(`key`) to the state, decayed by exp(`decay`).
  [[nodiscard]] KeyValueState with(Floats key, Floats value, Floats decay) const {
    const Floats largest = simd::max(exponent + decay, key);
    const Floats kept = simd::exp(exponent + decay - largest);
    const Floats added = simd::exp(key - largest);
    return {kept * numerator + added * value, kept * denominator + added, largest};
  }
};

void run_channels(const WeightedKeyValueArguments& args, std::int64_t item, const Lanes& lanes) {
  constexpr float kNoExponent = -1e38F;  // transformers, rwkv_linear_attention_cpu
  float* const stored = args.state + item * 3 * args.width;
  KeyValueState state{lanes.load(stored), lanes.load(stored + args.width),
                      lanes.load(stored + 2 * args.width)};
  state.exponent = state.denominator == 0.0F ? simd::broadcast(kNoExponent) : state.exponent;
  const Floats decay = -simd::exp(lanes.load(args.decay));
  const Floats bonus = lanes.load(args.bonus);
  for (std::int64_t token = 0; token < args.seq_len; ++token) {
    const std::int64_t row = (item * args.seq_len + token) * args.width;
    const Floats key = lanes.load(args.key + row);
    const Floats value = lanes.load(args.value + row);
    const KeyValueState seen = state.with(key + bonus, value, Floats{});
    state = state.with(key, value, decay);
    lanes.store(args.out + row, seen.numerator / seen.denominator);
  }
  lanes.store(stored, state.numerator);
  lanes.store(stored + args.width, state.denominator);
  lanes.store(stored + 2 * args.width, state.exponent);
}

}  // namespace

std::int64_t gated_linear_recurrence(const GatedRecurrenceArguments& args, float* scratch) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
  const std::int64_t gates = args.gate_rows() * args.head_dim;
#pragma omp parallel for schedule(static) reduction(+ : flops)
  for (std::int64_t place = 0; place < places; ++place) {
    float* const own = scratch + place * 2 * gates;
    const RecurrenceHead at{args, place / args.heads, place % args.heads, own, own + gates};
    for (std::int64_t first = 0; first < args.seq_len; first += args.gate_rows()) {
      const Range tokens{first, std::min(args.seq_len, first + args.gate_rows())};
      flops += project_gates(at, tokens);
      for (std::int64_t i = 0; i < tokens.size(); ++i) recur_token(at, first + i, i);
    }
  }
  return flops;
}

void token_shift(const TokenShiftArguments& args) {
  for (std::int64_t item = 0; item < args.batch; ++item) {
    const float* const x = args.x + item * args.seq_len * args.width;
    float* const out = args.out + item * args.seq_len * args.width;
    float* const state = args.state + item * args.width;
    std::copy_n(state, args.width, out);
    std::copy_n(x, (args.seq_len - 1) * args.width, out + args.width);
    std::copy_n(x + (args.seq_len - 1) * args.width, args.width, state);
  }
}

void token_mix(const float* x, const float* y, const float* mu, float* out, std::int64_t rows,
               std::int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width >= kSerialElements)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * width;
    for (std::int64_t i = 0; i < width; ++i) {
      out[first + i] = x[first + i] * mu[i] + y[first + i] * (1.0F - mu[i]);
    }
  }
}

void gate_mix(const float* x, const float* y, const float* share, float* out, std::int64_t count) {
#pragma omp parallel for schedule(static) if (count >= kSerialElements)
  for (std::int64_t first = 0; first < count; first += kLanes) {
    const Lanes some = lanes_at(first, count);
    const Floats other = some.load(y);
    some.store(out, other + simd::sigmoid(some.load(share)) * (some.load(x) - other));
  }
}

void weighted_key_value(const WeightedKeyValueArguments& args) {
  const std::int64_t elements = args.batch * args.width * args.seq_len;
#pragma omp parallel for collapse(2) schedule(static) if (elements >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t channel = 0; channel < args.width; channel += kLanes) {
      run_channels(args, item, lanes_at(channel, args.width));
    }
  }
}

void concatenate_rows(const float* x, std::int64_t first, const float* y, std::int64_t second,
                      float* out, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = out + row * (first + second);
    std::copy_n(x + row * first, first, to);
    std::copy_n(y + row * second, second, to + first);
  }
}

}  // namespace headroom::measured
