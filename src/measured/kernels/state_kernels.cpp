#include "state_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "alibi.h"
#include "aligned.h"
#include "lane_block.h"
#include "parallel.h"
#include "scalar_math.h"
#include "tile_multiply.h"
#include "transpose.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::kLanes;

/// Channels of a convolution in one sequence.
struct ChannelPlace {
  const ShortConvolutionArguments& args;
  std::int64_t item;
  Lanes channels;

  [[nodiscard]] float* x(std::int64_t token) const {
    return args.x + (item * args.seq_len + token) * args.channels;
  }
  [[nodiscard]] float* state(std::int64_t tap) const {
    return args.state + (item * args.kernel + tap) * args.channels;
  }
};

/// Weights of some channels by tap, and their last inputs.
class ConvolutionWindow {
 public:
  explicit ConvolutionWindow(std::int64_t kernel)
      : weights_(static_cast<std::size_t>(kernel * kLanes)),
        inputs_(static_cast<std::size_t>(kernel * kLanes)) {}

  void read(const ChannelPlace& at) {
    const ShortConvolutionArguments& args = at.args;
    // A few taps: one by one, faster than a whole square.
    const float* weight = args.weight + at.channels.first * args.kernel;
    for (std::int64_t i = 0; i < at.channels.count; ++i) {
      for (std::int64_t tap = 0; tap < args.kernel; ++tap) {
        weights_[static_cast<std::size_t>(tap * kLanes + i)] = *weight++;
      }
    }
    for (std::int64_t tap = 0; tap < args.kernel; ++tap) {
      simd::store(input(tap), at.channels.load(at.state(tap)));
    }
  }
  void write(const ChannelPlace& at) {
    for (std::int64_t tap = 0; tap < at.args.kernel; ++tap) {
      at.channels.store(at.state(tap), simd::load(input(tap)));
    }
  }
  [[nodiscard]] float* input(std::int64_t tap) { return inputs_.data() + tap * kLanes; }
  [[nodiscard]] Floats weight(std::int64_t tap) const {
    return simd::load(weights_.data() + tap * kLanes);
  }

 private:
  AlignedVector<float> weights_;  // [kernel, kLanes]
  AlignedVector<float> inputs_;   // [kernel, kLanes]
};

/// Convolves some channels; their state is the window of the last inputs.
std::int64_t convolve(const ChannelPlace& at, ConvolutionWindow& window) {
  const ShortConvolutionArguments& args = at.args;
  const Floats bias = args.bias == nullptr ? Floats{} : at.channels.load(args.bias);
  std::int64_t flops = 0;
  window.read(at);
  for (std::int64_t token = 0; token < args.seq_len; ++token) {
    Floats sum = bias;
    for (std::int64_t tap = 0; tap < args.kernel; ++tap, flops += 2 * at.channels.count) {
      const bool is_last = tap + 1 == args.kernel;
      const Floats x = is_last ? at.channels.load(at.x(token)) : simd::load(window.input(tap + 1));
      simd::store(window.input(tap), x);
      sum += window.weight(tap) * x;
    }
    at.channels.store(at.x(token), sum);
  }
  window.write(at);
  return flops;
}

/// One head of a scan in one sequence, with one decay for all of its states.
struct ScanHead {
  const StateSpaceArguments& args;
  std::int64_t item;
  std::int64_t head;
  WholeRows& state;
  WholeRow& b_row;
  WholeRow& c_row;

  [[nodiscard]] float time_step(std::int64_t token) const {
    if (args.kind == StateSpaceKind::lightning) return 1;
    const float bias = args.dt_bias == nullptr ? 0.0F : args.dt_bias[head];
    const float step = softplus(args.time_step.row(token)[head] + bias);
    return std::clamp(step, args.least_time_step, args.greatest_time_step);
  }
  [[nodiscard]] float decay(float step) const {
    if (args.kind == StateSpaceKind::lightning) return args.decay[head];
    return std::exp(-std::exp(args.a_log[head]) * step);
  }
  [[nodiscard]] std::int64_t parameter() const {
    const std::int64_t all_heads = args.all_heads == 0 ? args.heads : args.all_heads;
    return (args.first_head + head) / (all_heads / args.groups) * args.state_size;
  }
};

/// Rows of states that share their loads of b and c while the states stay in cache. The first token
/// reads them from memory, where one stream is the fastest.
constexpr std::int64_t kScanRows = 4;

/// A token's update of some rows of a head's states.
struct ScanUpdate {
  std::int64_t stride;  ///< floats from row to row, whole vectors
  float decay;
  float time_step;
  const float* b;
  const float* c;
};

/// Decays `rows` rows of states, adds time_step·x·b to each and sums its products with c.
template <std::size_t rows>
std::array<float, rows> scan_rows(const ScanUpdate& update, float* first, const float* x) {
  std::array<Floats, rows> sums = {};
  std::array<Floats, rows> inputs;
  simd::unroll<rows>([&](auto r) { inputs[r] = simd::broadcast(update.time_step * x[r]); });
  for (std::int64_t n = 0; n < update.stride; n += kLanes) {
    const Floats b = simd::load(update.b + n);
    const Floats c = simd::load(update.c + n);
    simd::unroll<rows>([&](auto r) {
      float* const at = first + static_cast<std::int64_t>(r) * update.stride + n;
      const Floats state = update.decay * simd::load(at) + inputs[r] * b;
      simd::store(at, state);
      sums[r] += state * c;
    });
  }
  std::array<float, rows> totals;
  simd::unroll<rows>([&](auto r) { totals[r] = simd::sum(sums[r]); });
  return totals;
}

std::int64_t scan_token(const ScanHead& at, std::int64_t token) {
  const StateSpaceArguments& args = at.args;
  const std::int64_t size = args.state_size;
  const std::int64_t first = at.head * args.head_dim;
  const float step = at.time_step(token);
  const float decay = at.decay(step);
  const float kept = args.kind == StateSpaceKind::lightning ? 0.0F : args.d[at.head];
  const float* const b = at.b_row.read(args.b.row(token) + at.parameter(), size);
  const float* const c = at.c_row.read(args.c.row(token) + at.parameter(), size);
  const float* const x = args.x.row(token) + first;
  float* const out = args.out + token * args.heads * args.head_dim + first;
  const ScanUpdate update{at.state.stride(), decay, step, b, c};
  std::int64_t flops = 0;
  const auto scan = [&]<std::size_t rows>(std::integral_constant<std::size_t, rows>,
                                          std::int64_t i) {
    const auto totals = scan_rows<rows>(update, at.state.data() + i * update.stride, x + i);
    for (std::size_t r = 0; r < rows; ++r, ++i) out[i] = totals[r] + kept * x[i];
    flops += static_cast<std::int64_t>(rows) * kScanFlops * size;
  };
  std::int64_t i = 0;
  if (token % args.seq_len > 0) {
    for (; i + kScanRows <= args.head_dim; i += kScanRows) {
      scan(std::integral_constant<std::size_t, kScanRows>{}, i);
    }
  }
  for (; i < args.head_dim; ++i) scan(std::integral_constant<std::size_t, 1>{}, i);
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
  float* change;  ///< the correction by value dimension, whole vectors; then what the query reads
  WholeRows& state;
  WholeRow& value;

  [[nodiscard]] std::int64_t key_head() const { return head / (args.heads / args.key_heads); }
};

/// to = from / |from| · factor
void normalise(const float* from, float factor, std::int64_t count, float* to) {
  constexpr float kEps = 1e-6F;  // transformers, models/qwen3_next, l2norm
  const float scale = factor / std::sqrt(dot(from, from, count) + kEps);
  for_lanes(count, [&](const Lanes& some) { some.store(to, some.load(from) * scale); });
}

/// FLOPs of an element of the state: a multiply-add at the key, one into it and one out of it.
constexpr std::int64_t kDeltaFlops = 6;

/// Reads the decayed state at the key and writes how much `value` differs, times `beta`, into
/// `change`.
template <std::size_t vectors>
void read_columns(const DeltaHead& at, const LaneBlock<vectors>& columns, const float* value,
                  float beta) {
  std::array<Floats, vectors> read = {};
  const float* row = at.state.data();
  for (std::int64_t i = 0; i < at.args.key_dim; ++i, row += at.state.stride()) {
    const float factor = at.key[i] * at.decay[i];
    simd::unroll<vectors>([&](auto v) { read[v] += factor * columns.load(row, v); });
  }
  simd::unroll<vectors>(
      [&](auto v) { columns.store(at.change, (columns.load(value, v) - read[v]) * beta, v); });
}

/// Decays the state, adds the correction at the key, and reads the state at the query into
/// `change`.
template <std::size_t vectors>
void correct_columns(const DeltaHead& at, const LaneBlock<vectors>& columns) {
  std::array<Floats, vectors> change;
  std::array<Floats, vectors> read = {};
  simd::unroll<vectors>([&](auto v) { change[v] = columns.load(at.change, v); });
  float* row = at.state.data();
  for (std::int64_t i = 0; i < at.args.key_dim; ++i, row += at.state.stride()) {
    const float decay = at.decay[i];
    const float key = at.key[i];
    const float query = at.query[i];
    simd::unroll<vectors>([&](auto v) {
      const Floats state = decay * columns.load(row, v) + key * change[v];
      columns.store(row, state, v);
      read[v] += query * state;
    });
  }
  simd::unroll<vectors>([&](auto v) { columns.store(at.change, read[v], v); });
}

/// Decays of one token, by key dimension.
void set_decays(const DeltaHead& at, std::int64_t token) {
  const GatedDeltaArguments& args = at.args;
  const float rate = -std::exp(args.a_log[at.head]);
  const auto decay = [&](Floats step) {
    if (args.decay_bound != 0) return simd::exp(args.decay_bound * simd::sigmoid(-rate * step));
    return simd::exp(rate * simd::softplus(step));
  };
  const float* const alpha = args.alpha.row(token);
  switch (args.decay) {
    case DeltaDecay::each_head: {
      const float step = alpha[at.head] + args.dt_bias[at.head];
      std::fill_n(at.decay, args.key_dim, decay(simd::broadcast(step))[0]);
      break;
    }
    case DeltaDecay::each_key_dim: {
      const std::int64_t first = at.head * args.key_dim;
      for_lanes(args.key_dim, [&](const Lanes& keys) {
        keys.store(at.decay, decay(keys.load(alpha + first) + keys.load(args.dt_bias + first)));
      });
      break;
    }
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
  const float* const value =
      at.value.read(args.value.row(token) + at.head * args.value_dim, args.value_dim);
  std::int64_t flops = 0;
  for_blocks(at.state.stride(), [&](const auto& columns) {
    read_columns(at, columns, value, beta);
    correct_columns(at, columns);
    flops += kDeltaFlops * args.key_dim * std::min(columns.count, args.value_dim - columns.first);
  });
  std::copy_n(at.change, args.value_dim,
              args.out + (token * args.heads + at.head) * args.value_dim);
  return flops;
}

}  // namespace

std::int64_t short_convolution(const ShortConvolutionArguments& args) {
  std::int64_t flops = 0;
#pragma omp parallel reduction(+ : flops) if (args.batch * args.channels * args.seq_len >= \
                                                  kSerialElements)
  {
    ConvolutionWindow window(args.kernel);
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t item = 0; item < args.batch; ++item) {
      for (std::int64_t channel = 0; channel < args.channels; channel += kLanes) {
        flops += convolve({args, item, lanes_at(channel, args.channels)}, window);
      }
    }
  }
  return flops;
}

std::vector<float> lightning_decays(std::int64_t heads, std::int64_t layer, std::int64_t layers,
                                    LightningForm form) {
  constexpr double kEps = 1e-5;
  const auto last = static_cast<double>(layers - 1);
  std::vector<float> decays;
  switch (form) {
    case LightningForm::minimax: {
      const double factor = 1 - static_cast<double>(layer) / (last + kEps) + kEps;
      for (std::int64_t head = 1; head <= heads; ++head) {
        const double slope =
            std::exp2(-8.0 * static_cast<double>(head) / static_cast<double>(heads)) * factor;
        decays.push_back(static_cast<float>(std::exp(-slope)));
      }
      break;
    }
    case LightningForm::ling: {
      const double factor = 1 - static_cast<double>(layer - 1) / last + kEps;
      for (const float slope : alibi_slopes({.kind = AlibiKind::power_below}, heads)) {
        decays.push_back(static_cast<float>(std::exp(-static_cast<double>(slope) * factor)));
      }
      break;
    }
  }
  return decays;
}

std::int64_t state_space_scan(const StateSpaceArguments& args) {
  if (args.kind == StateSpaceKind::selective) return selective_scan(args);
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
  const std::int64_t floats = args.head_dim * args.state_size;
#pragma omp parallel reduction(+ : flops)
  {
    WholeRows state;
    WholeRow b;
    WholeRow c;
#pragma omp for schedule(static)
    for (std::int64_t place = 0; place < places; ++place) {
      state.read(args.state + place * floats, args.head_dim, args.state_size);
      const ScanHead at{args, place / args.heads, place % args.heads, state, b, c};
      for (std::int64_t token = 0; token < args.seq_len; ++token) {
        flops += scan_token(at, at.item * args.seq_len + token);
      }
      state.write();
    }
  }
  return flops;
}

std::int64_t gated_delta(const GatedDeltaArguments& args, float* scratch) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
  const std::int64_t own = args.scratch_floats() / places;
  const std::int64_t floats = args.key_dim * args.value_dim;
#pragma omp parallel reduction(+ : flops)
  {
    WholeRows state;
    WholeRow value;
#pragma omp for schedule(static)
    for (std::int64_t place = 0; place < places; ++place) {
      float* const query = scratch + place * own;
      float* const key = query + args.key_dim;
      float* const decay = key + args.key_dim;
      state.read(args.state + place * floats, args.key_dim, args.value_dim);
      const DeltaHead at{args,
                         place / args.heads,
                         place % args.heads,
                         query,
                         key,
                         decay,
                         decay + args.key_dim,
                         state,
                         value};
      for (std::int64_t token = 0; token < args.seq_len; ++token) {
        flops += delta_token(at, at.item * args.seq_len + token);
      }
      state.write();
    }
  }
  return flops;
}

}  // namespace headroom::measured
