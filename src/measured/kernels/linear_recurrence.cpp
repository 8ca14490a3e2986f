#include "linear_recurrence.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"
#include "scalar_math.h"

namespace headroom::measured {
namespace {

/// One head of an RG-LRU in one sequence, with its scratch.
struct RecurrenceHead {
  const GatedRecurrenceArguments& args;
  std::int64_t item;
  std::int64_t head;
  float* input_gate;
  float* recurrent_gate;
};

/// to = x·weight + bias for a square weight [in, out].
std::int64_t project_block(const float* x, const float* weight, const float* bias, std::int64_t dim,
                           float* to) {
  std::copy_n(bias, dim, to);
  for (std::int64_t i = 0; i < dim; ++i, weight += dim) {
    for (std::int64_t j = 0; j < dim; ++j) to[j] += x[i] * weight[j];
  }
  return 2 * dim * dim;
}

std::int64_t recur_token(const RecurrenceHead& at, std::int64_t token) {
  constexpr float kDecayScale = -8.0F;  // arXiv 2402.19427, section 2.4
  const GatedRecurrenceArguments& args = at.args;
  const std::int64_t dim = args.head_dim;
  const std::int64_t first = at.head * dim;
  const std::int64_t row = (at.item * args.seq_len + token) * args.width() + first;
  const float* const x = args.x + row;
  const std::int64_t block = first * dim;
  std::int64_t flops =
      project_block(x, args.input_gate + block, args.input_gate_bias + first, dim, at.input_gate);
  flops += project_block(x, args.recurrent_gate + block, args.recurrent_gate_bias + first, dim,
                         at.recurrent_gate);
  float* const state = args.state + at.item * args.width() + first;
  const bool starts = args.first_position + token == 0;
  for (std::int64_t j = 0; j < dim; ++j) {
    const float log_decay =
        kDecayScale * sigmoid(at.recurrent_gate[j]) * softplus(args.decay[first + j]);
    const float decay = starts ? 0.0F : std::exp(log_decay);
    const float factor = starts ? 1.0F : std::sqrt(1.0F - std::exp(2.0F * log_decay));
    state[j] = decay * state[j] + factor * (x[j] * sigmoid(at.input_gate[j]));
    args.out[row + j] = state[j];
  }
  return flops;
}

/// One channel of WKV in one sequence. The state is relative to exp(`exponent`).
struct KeyValueState {
  float numerator;
  float denominator;
  float exponent;

  /// Adds `value` with the weight exp(`key`) to the state, decayed by exp(`decay`).
  [[nodiscard]] KeyValueState with(float key, float value, float decay) const {
    const float largest = std::max(exponent + decay, key);
    const float kept = std::exp(exponent + decay - largest);
    const float added = std::exp(key - largest);
    return {kept * numerator + added * value, kept * denominator + added, largest};
  }
};

void run_channel(const WeightedKeyValueArguments& args, std::int64_t item, std::int64_t channel) {
  constexpr float kNoExponent = -1e38F;  // transformers, rwkv_linear_attention_cpu
  float* const stored = args.state + item * 3 * args.width + channel;
  KeyValueState state{stored[0], stored[args.width], stored[2 * args.width]};
  if (state.denominator == 0.0F) state.exponent = kNoExponent;
  const float decay = -std::exp(args.decay[channel]);
  for (std::int64_t token = 0; token < args.seq_len; ++token) {
    const std::int64_t at = (item * args.seq_len + token) * args.width + channel;
    const float key = args.key[at];
    const float value = args.value[at];
    const KeyValueState seen = state.with(key + args.bonus[channel], value, 0.0F);
    state = state.with(key, value, decay);
    args.out[at] = seen.numerator / seen.denominator;
  }
  stored[0] = state.numerator;
  stored[args.width] = state.denominator;
  stored[2 * args.width] = state.exponent;
}

}  // namespace

std::int64_t gated_linear_recurrence(const GatedRecurrenceArguments& args, float* scratch) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
#pragma omp parallel for schedule(static) reduction(+ : flops)
  for (std::int64_t place = 0; place < places; ++place) {
    float* const gates = scratch + place * 2 * args.head_dim;
    const RecurrenceHead at{args, place / args.heads, place % args.heads, gates,
                            gates + args.head_dim};
    for (std::int64_t token = 0; token < args.seq_len; ++token) flops += recur_token(at, token);
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
  for (std::int64_t i = 0; i < count; ++i) out[i] = y[i] + sigmoid(share[i]) * (x[i] - y[i]);
}

void weighted_key_value(const WeightedKeyValueArguments& args) {
  const std::int64_t places = args.batch * args.width;
#pragma omp parallel for schedule(static) if (places * args.seq_len >= kSerialElements)
  for (std::int64_t place = 0; place < places; ++place) {
    run_channel(args, place / args.width, place % args.width);
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
