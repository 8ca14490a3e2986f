#include "sweep.h"

#include <algorithm>
#include <chrono>

namespace headroom::measured {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostSamples = 2000;
/// A reading of the gauge holds for so long.
constexpr double kFresh = 0.1;

double pace_of(const Budget& budget) {
  const GaugeReading& reading = budget.gauge->recent(kFresh);
  switch (budget.pace) {
    case Pace::compute:
      return reading.compute_s / budget.reference.compute_s;
    case Pace::memory:
      break;
  }
  return reading.memory_s / budget.reference.memory_s;
}

}  // namespace

Budget budget_of(Effort effort) noexcept {
  switch (effort) {
    case Effort::quick:
      return {3, 0.001, nullptr, {}, Pace::compute};
    case Effort::full:
      break;
  }
  return {4, 0.003, nullptr, {}, Pace::compute};
}

KernelTime time_call(const Budget& budget, const std::function<void(std::int64_t i)>& call) {
  const double pace_before = budget.gauge == nullptr ? 1 : pace_of(budget);
  call(0);
  std::vector<double> samples;
  const auto start = Clock::now();
  double total = 0;
  for (std::int64_t i = 1; i < kMostSamples; ++i) {
    const auto begin = Clock::now();
    call(i);
    const auto end = Clock::now();
    samples.push_back(std::chrono::duration<double>(end - begin).count());
    total = std::chrono::duration<double>(end - start).count();
    const bool enough = static_cast<int>(samples.size()) >= budget.fewest_samples;
    if (enough && total >= budget.seconds) break;
  }
  const double pace_after = budget.gauge == nullptr ? 1 : pace_of(budget);
  const TimeStatistics statistics = summarize(std::move(samples));
  // The clock's own resolution is what is left of a call that takes nothing.
  const double seconds = std::max(statistics.median_s, 1e-9);
  return {seconds * 2 / (pace_before + pace_after), statistics.mad_s / seconds};
}

KernelTable sweep(KernelKind kind, const Point& point) {
  KernelTable table{kind, calibration_axes(kind), {}, {}};
  std::size_t points = 1;
  for (const auto& axis : table.axes) points *= axis.size();
  for (std::size_t number = 0; number < points; ++number) {
    KernelSizes sizes(table.axes.size());
    std::size_t rest = number;
    for (std::size_t axis = sizes.size(); axis-- > 0;) {
      sizes[axis] = table.axes[axis][rest % table.axes[axis].size()];
      rest /= table.axes[axis].size();
    }
    const std::optional<KernelTime> time = point(sizes);
    table.seconds.push_back(time ? std::optional(time->seconds) : std::nullopt);
    table.spread.push_back(time ? time->spread : 0);
  }
  return table;
}

AlignedVector<float> filled(std::int64_t count) {
  AlignedVector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-33F;
  }
  return values;
}

}  // namespace headroom::measured
