#include "state_kernels.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"
#include "scalar_math.h"

namespace headroom::measured {
namespace {

/// One channel of a convolution in one sequence.
struct ChannelPlace {
  const ShortConvolutionArguments& args;
  std::int64_t item;
  std::int64_t channel;

  [[nodiscard]] float& x(std::int64_t token) const {
    return args.x[(item * args.seq_len + token) * args.channels + channel];
  }
  [[nodiscard]] float& state(std::int64_t tap) const {
    return args.state[(item * args.kernel + tap) * args.channels + channel];
  }
};

/// Convolves one channel; its state is the window of the last inputs.
std::int64_t convolve(const ChannelPlace& at) {
  const ShortConvolutionArguments& args = at.args;
  const float* const weight = args.weight + at.channel * args.kernel;
  const float bias = args.bias == nullptr ? 0.0F : args.bias[at.channel];
  const std::int64_t last = args.kernel - 1;
  std::int64_t flops = 0;
  for (std::int64_t token = 0; token < args.seq_len; ++token) {
    for (std::int64_t tap = 0; tap < last; ++tap) at.state(tap) = at.state(tap + 1);
    at.state(last) = at.x(token);
    float sum = bias;
    for (std::int64_t tap = 0; tap < args.kernel; ++tap, flops += 2) {
      sum += weight[tap] * at.state(tap);
    }
    at.x(token) = sum;
  }
  return flops;
}

/// One head of a scan in one sequence.
struct ScanHead {
  const StateSpaceArguments& args;
  std::int64_t item;
  std::int64_t head;

  [[nodiscard]] float time_step(std::int64_t token) const {
    const float bias = args.dt_bias == nullptr ? 0.0F : args.dt_bias[head];
    const float step = softplus(args.time_step.row(token)[head] + bias);
    return std::clamp(step, args.least_time_step, args.greatest_time_step);
  }
  [[nodiscard]] std::int64_t parameter() const {
    const std::int64_t all_heads = args.all_heads == 0 ? args.heads : args.all_heads;
    return (args.first_head + head) / (all_heads / args.groups) * args.state_size;
  }
};

/// Decays one row of the state, adds `input`·b and returns its product with c. `decay(n)` is the
/// factor of state n.
template <class Decay>
float scan_row(float* row, std::int64_t size, float input, const float* b, const float* c,
               const Decay& decay) {
  float sum = 0;
  for (std::int64_t n = 0; n < size; ++n) {
    row[n] = decay(n) * row[n] + input * b[n];
    sum += row[n] * c[n];
  }
  return sum;
}

/// Multiply-adds per state element: into the state, and out of it.
constexpr std::int64_t kScanFlops = 4;

std::int64_t scan_token(const ScanHead& at, std::int64_t token) {
  const StateSpaceArguments& args = at.args;
  const std::int64_t size = args.state_size;
  const std::int64_t first = at.head * args.head_dim;
  const bool lightning = args.kind == StateSpaceKind::lightning;
  const float step = lightning ? 1.0F : at.time_step(token);
  const float kept = lightning ? 0.0F : args.d[at.head];
  const float* const b = args.b.row(token) + at.parameter();
  const float* const c = args.c.row(token) + at.parameter();
  const float* const x = args.x.row(token) + first;
  float* const out = args.out + token * args.heads * args.head_dim + first;
  float* row = args.state + (at.item * args.heads + at.head) * args.head_dim * size;
  std::int64_t flops = 0;
  for (std::int64_t i = 0; i < args.head_dim; ++i, row += size, flops += kScanFlops * size) {
    float sum = 0;
    switch (args.kind) {
      case StateSpaceKind::lightning: {
        const float decay = args.decay[at.head];
        sum = scan_row(row, size, x[i], b, c, [decay](std::int64_t) { return decay; });
        break;
      }
      case StateSpaceKind::dual: {
        const float decay = std::exp(-std::exp(args.a_log[at.head]) * step);
        sum = scan_row(row, size, step * x[i], b, c, [decay](std::int64_t) { return decay; });
        break;
      }
      case StateSpaceKind::selective: {
        const float* const rates = args.a_log + at.head * size;
        sum = scan_row(row, size, step * x[i], b, c,
                       [&](std::int64_t n) { return std::exp(-std::exp(rates[n]) * step); });
        break;
      }
    }
    out[i] = sum + kept * x[i];
  }
  return flops;
}

/// One value head of a delta rule in one sequence, with its scratch.
struct DeltaHead {
  const GatedDeltaArguments& args;
  std::int64_t item;
  std::int64_t head;
  float* query;
  float* key;
  float* decay;   ///< by key dimension
  float* change;  ///< read of the state at the key, then the correction

  [[nodiscard]] std::int64_t key_head() const { return head / (args.heads / args.key_heads); }
  [[nodiscard]] float* state() const {
    return args.state + (item * args.heads + head) * args.key_dim * args.value_dim;
  }
};

/// to = from / |from| · factor
void normalise(const float* from, float factor, std::int64_t count, float* to) {
  constexpr float kEps = 1e-6F;  // transformers, models/qwen3_next, l2norm
  float squares = 0;
  for (std::int64_t i = 0; i < count; ++i) squares += from[i] * from[i];
  const float scale = factor / std::sqrt(squares + kEps);
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * scale;
}

/// Decays the state and reads it at the key, into `change`.
std::int64_t decay_and_read(const DeltaHead& at) {
  const std::int64_t width = at.args.value_dim;
  std::fill_n(at.change, width, 0.0F);
  float* row = at.state();
  for (std::int64_t i = 0; i < at.args.key_dim; ++i, row += width) {
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] *= at.decay[i];
      at.change[j] += at.key[i] * row[j];
    }
  }
  return 2 * at.args.key_dim * width;
}

/// Adds the correction at the key and reads the state at the query.
std::int64_t correct_and_read(const DeltaHead& at, float* out) {
  const std::int64_t width = at.args.value_dim;
  std::fill_n(out, width, 0.0F);
  float* row = at.state();
  for (std::int64_t i = 0; i < at.args.key_dim; ++i, row += width) {
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] += at.key[i] * at.change[j];
      out[j] += at.query[i] * row[j];
    }
  }
  return 4 * at.args.key_dim * width;
}

/// Decays of one token, by key dimension.
void set_decays(const DeltaHead& at, std::int64_t token) {
  const GatedDeltaArguments& args = at.args;
  const float rate = -std::exp(args.a_log[at.head]);
  const float* const alpha = args.alpha.row(token);
  const auto decay = [&](std::int64_t index) {
    const float step = alpha[index] + args.dt_bias[index];
    if (args.decay_bound != 0) return std::exp(args.decay_bound * sigmoid(-rate * step));
    return std::exp(rate * softplus(step));
  };
  switch (args.decay) {
    case DeltaDecay::each_head:
      std::fill_n(at.decay, args.key_dim, decay(at.head));
      break;
    case DeltaDecay::each_key_dim:
      for (std::int64_t i = 0; i < args.key_dim; ++i) {
        at.decay[i] = decay(at.head * args.key_dim + i);
      }
      break;
  }
}

std::int64_t delta_token(const DeltaHead& at, std::int64_t token) {
  const GatedDeltaArguments& args = at.args;
  const std::int64_t dim = args.key_dim;
  const float root = std::sqrt(static_cast<float>(dim));
  normalise(args.query.row(token) + at.key_head() * dim, 1.0F / root, dim, at.query);
  normalise(args.key.row(token) + at.key_head() * dim, 1.0F, dim, at.key);
  set_decays(at, token);
  const float beta = args.strength * sigmoid(args.beta.row(token)[at.head]);
  std::int64_t flops = decay_and_read(at);
  const float* const value = args.value.row(token) + at.head * args.value_dim;
  for (std::int64_t j = 0; j < args.value_dim; ++j) {
    at.change[j] = (value[j] - at.change[j]) * beta;
  }
  float* const out = args.out + (token * args.heads + at.head) * args.value_dim;
  flops += correct_and_read(at, out);
  return flops;
}

}  // namespace

std::int64_t short_convolution(const ShortConvolutionArguments& args) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.channels;
#pragma omp parallel for schedule(static) reduction(+ : flops) if (places * args.seq_len >= \
                                                                       kSerialElements)
  for (std::int64_t place = 0; place < places; ++place) {
    flops += convolve({args, place / args.channels, place % args.channels});
  }
  return flops;
}

std::vector<float> lightning_decays(std::int64_t heads, std::int64_t layer, std::int64_t layers) {
  constexpr double kEps = 1e-5;
  const double factor =
      1 - static_cast<double>(layer) / (static_cast<double>(layers - 1) + kEps) + kEps;
  std::vector<float> decays;
  for (std::int64_t head = 1; head <= heads; ++head) {
    const double slope =
        std::exp2(-8.0 * static_cast<double>(head) / static_cast<double>(heads)) * factor;
    decays.push_back(static_cast<float>(std::exp(-slope)));
  }
  return decays;
}

std::int64_t state_space_scan(const StateSpaceArguments& args) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
#pragma omp parallel for schedule(static) reduction(+ : flops)
  for (std::int64_t place = 0; place < places; ++place) {
    const ScanHead at{args, place / args.heads, place % args.heads};
    for (std::int64_t token = 0; token < args.seq_len; ++token) {
      flops += scan_token(at, at.item * args.seq_len + token);
    }
  }
  return flops;
}

std::int64_t gated_delta(const GatedDeltaArguments& args, float* scratch) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
  const std::int64_t own = 3 * args.key_dim + args.value_dim;
#pragma omp parallel for schedule(static) reduction(+ : flops)
  for (std::int64_t place = 0; place < places; ++place) {
    float* const query = scratch + place * own;
    const DeltaHead at{args,
                       place / args.heads,
                       place % args.heads,
                       query,
                       query + args.key_dim,
                       query + 2 * args.key_dim,
                       query + 3 * args.key_dim};
    for (std::int64_t token = 0; token < args.seq_len; ++token) {
      flops += delta_token(at, at.item * args.seq_len + token);
    }
  }
  return flops;
}

}  // namespace headroom::measured
