#include "operator_time.h"

#include <algorithm>
#include <cmath>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// Half width of the 95 % range in units of the median absolute deviation, for a normal
/// distribution: 2 · 1.4826.
constexpr double kSpreadOfMad = 2.97;
/// Relative error of interpolation, measured by leaving out grid points.
constexpr double kInterpolation = 0.03;

/// Fraction of a model's weights that a pass no longer finds in the last-level cache. A shared
/// cache that is filled cyclically retains nothing of a working set well above its size, and all of
/// one of half its size.
double cold_share(const MachineState& state) {
  const double share = state.model_bytes / state.last_level_cache_bytes;
  return std::clamp((share - 0.5) / 0.75, 0.0, 1.0);
}

KernelTime cold_time(const ThreadProfile& profile, const KernelCall& call) {
  return time_of(call.stored != nullptr ? call.stored->cold : table_of(profile, call.kind),
                 call.sizes);
}

KernelTime warm_time(const ThreadProfile& profile, const KernelCall& call) {
  if (call.stored != nullptr) return time_of(call.stored->warm, call.sizes);
  return time_of(table_of(profile, call.warm.value_or(call.kind)), call.sizes);
}

KernelTime call_time(const ThreadProfile& profile, const KernelCall& call,
                     const MachineState& state) {
  const KernelTime cold = cold_time(profile, call);
  if (!call.warm) return cold;
  const KernelTime warm = warm_time(profile, call);
  const double share = cold_share(state);
  return {share * cold.seconds + (1 - share) * warm.seconds, std::max(cold.spread, warm.spread)};
}

double bandwidth_at(const std::vector<BandwidthPoint>& points, double working_set) {
  for (const BandwidthPoint& point : points) {
    if (working_set <= static_cast<double>(point.working_set_bytes)) return point.bytes_per_s;
  }
  return points.back().bytes_per_s;
}

}  // namespace

StepTime measured_time(const ThreadProfile& profile, const std::vector<KernelCall>& calls,
                       const StepWork& work, const MachineState& state, double own_share) {
  StepTime step;
  step.overhead_s = profile.step_overhead_s + cold_share(state) * profile.cold_step_overhead_s;
  step.time_s = step.cached_s = step.overhead_s;
  const double host_s = step.overhead_s;
  double spread = 0;
  for (const KernelCall& call : calls) {
    const KernelTime time = call_time(profile, call, state);
    step.time_s += call.times * time.seconds;
    step.cached_s += call.times * (call.warm ? warm_time(profile, call) : time).seconds;
    spread += call.times * time.seconds * (kSpreadOfMad * time.spread + kInterpolation);
    const KernelTable& table = table_of(profile, KernelKind::copy);
    step.overhead_s += call.times * table.seconds.front().value_or(0);
  }
  if (state.runs_behind_host) {
    // The host prepares this operator while the device still runs the one before.
    step.time_s = std::max(host_s, step.time_s - host_s);
    step.cached_s = std::max(host_s, step.cached_s - host_s);
  }
  step.low_s = std::max(0.0, own_share * step.time_s - spread);
  step.high_s = step.time_s + spread;
  step.compute_s = (work.matrix_flops + work.elementwise_flops) / peak_flops_per_s(profile);
  const bool from_memory = work.bytes > state.last_level_cache_bytes / 2 ||
                           (!calls.empty() && calls.front().warm && cold_share(state) > 0.5);
  const double working_set = from_memory ? 1e18 : work.bytes;
  step.memory_s = work.bytes / bandwidth_at(profile.read, working_set);
  step.slowest_level = from_memory ? Bound::memory : Bound::cache;
  return step;
}

StepTime assumed_time(const ReachedRates& rates, const StepWork& work) {
  const EffectiveRates& reached = rates.rates;
  StepTime step;
  step.compute_s = work.matrix_flops / reached.peak_flops_per_s;
  step.memory_s = work.bytes / rates.memory_bytes_per_s;
  const double tiled = work.gemm ? tiled_share(*work.gemm, reached.processors) : 1;
  step.overhead_s = work.reads_weights ? reached.kernel_s : 0;
  const double arithmetic_s = tiled * work.matrix_flops / reached.flops_per_s;
  const double memory_s =
      work.bytes / (work.attends ? reached.cache_bytes_per_s : reached.bytes_per_s);
  step.time_s = step.overhead_s + std::max(arithmetic_s, memory_s);
  const double compute_share = arithmetic_s > memory_s ? arithmetic_s / step.time_s : 0;
  const double range = rates.reached.range.of(compute_share);
  const double roofline_s = std::max(step.compute_s, step.memory_s);
  step.low_s = std::max(step.time_s / (1 + range), std::min(step.time_s, roofline_s));
  step.high_s = step.time_s * (1 + range);
  step.cached_s = step.time_s;
  return step;
}

Bound bound_of(const StepTime& time) noexcept {
  // The call overhead exceeds the roofline time.
  if (time.overhead_s > std::max(time.compute_s, time.memory_s)) return Bound::overhead;
  return time.compute_s >= time.memory_s ? Bound::compute : time.slowest_level;
}

}  // namespace headroom::detail
