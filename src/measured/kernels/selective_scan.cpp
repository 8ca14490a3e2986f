// Selective scan: some channels at a time, one lane each, with their states in cache.
#include <cmath>

#include "aligned.h"
#include "lane_block.h"
#include "parallel.h"
#include "state_kernels.h"
#include "transpose.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::kLanes;

/// Some channels of one sequence.
class ChannelScan {
 public:
  explicit ChannelScan(const StateSpaceArguments& args)
      : args_(args),
        rates_(static_cast<std::size_t>(args.state_size * kLanes)),
        states_(rates_.size()) {}

  /// Scans all tokens of sequence `item`; returns the FLOPs.
  std::int64_t run(std::int64_t item, const Lanes& channels) {
    float* const stored = args_.state + (item * args_.heads + channels.first) * args_.state_size;
    read(args_.a_log + channels.first * args_.state_size, channels, rates_);
    read(stored, channels, states_);
    for (std::int64_t n = 0; n < args_.state_size; ++n) {
      simd::store(at(rates_, n), -simd::exp(simd::load(at(rates_, n))));
    }
    std::int64_t flops = 0;
    for (std::int64_t token = 0; token < args_.seq_len; ++token) {
      flops += scan(item * args_.seq_len + token, channels);
    }
    transpose<RowEnd::exact>(
        args_.state_size, channels.count, [&](std::int64_t n) { return at(states_, n); },
        [&](std::int64_t i) { return stored + i * args_.state_size; });
    return flops;
  }

 private:
  static float* at(AlignedVector<float>& values, std::int64_t n) {
    return values.data() + n * kLanes;
  }

  /// Transposes values of the channels [channels, state_size].
  void read(const float* from, const Lanes& channels, AlignedVector<float>& to) const {
    transpose<RowEnd::padded>(
        channels.count, args_.state_size,
        [&](std::int64_t i) { return from + i * args_.state_size; },
        [&](std::int64_t n) { return at(to, n); });
  }

  [[nodiscard]] Floats time_step(std::int64_t token, const Lanes& channels) const {
    const Floats bias = args_.dt_bias == nullptr ? Floats{} : channels.load(args_.dt_bias);
    const Floats step = simd::softplus(channels.load(args_.time_step.row(token)) + bias);
    return simd::min(simd::broadcast(args_.greatest_time_step),
                     simd::max(simd::broadcast(args_.least_time_step), step));
  }

  std::int64_t scan(std::int64_t token, const Lanes& channels) {
    const Floats step = time_step(token, channels);
    const Floats x = channels.load(args_.x.row(token));
    const Floats input = step * x;
    const float* const b = args_.b.row(token);
    const float* const c = args_.c.row(token);
    Floats sum = channels.load(args_.d) * x;
    std::int64_t flops = 0;
    for (std::int64_t n = 0; n < args_.state_size; ++n, flops += kScanFlops * channels.count) {
      const Floats decay = simd::exp(simd::load(at(rates_, n)) * step);
      const Floats state = decay * simd::load(at(states_, n)) + input * b[n];
      simd::store(at(states_, n), state);
      sum += state * c[n];
    }
    channels.store(args_.out + token * args_.heads, sum);
    return flops;
  }

  const StateSpaceArguments& args_;
  AlignedVector<float> rates_;   // [state_size, kLanes]
  AlignedVector<float> states_;  // [state_size, kLanes]
};

}  // namespace

std::int64_t selective_scan(const StateSpaceArguments& args) {
  std::int64_t flops = 0;
#pragma omp parallel reduction(+ : flops)
  {
    ChannelScan scan(args);
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t item = 0; item < args.batch; ++item) {
      for (std::int64_t channel = 0; channel < args.heads; channel += kLanes) {
        flops += scan.run(item, lanes_at(channel, args.heads));
      }
    }
  }
  return flops;
}

}  // namespace headroom::measured
