#include "sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "clock.h"
#include "headroom/expr.h"
#include "interruption.h"
#include "kernels/bandwidth.h"
#include "last_cache.h"

namespace headroom::measured {
namespace {

constexpr std::int64_t kMaxSamples = 2000;
/// Seconds for which a gauge reading is valid.
constexpr double kReadingLifetime = 0.15;
/// Long calls are repeated until their relative spread is below this, at most kMaxRepeats times.
constexpr double kSteadySpread = 0.03;
constexpr std::size_t kMaxRepeats = 5;
/// Measurements during which the gauge changed by more are repeated, up to kMaxAttempts times.
constexpr double kSameSpeed = 0.15;
constexpr int kMaxAttempts = 3;

/// Current time of the gauge for `resource`, over the reference.
double slowdown_of(const Budget& budget, Resource resource) {
  if (budget.gauge == nullptr) return 1;
  return budget.gauge->recent(resource, kReadingLifetime) / seconds_of(budget.reference, resource);
}

/// Slowdown of the budget's resource, after waiting for other processes to leave the processors.
double undisturbed_slowdown(const Budget& budget) {
  if (budget.gauge == nullptr) return 1;
  const double usual = seconds_of(budget.reference, budget.resource);
  return budget.gauge->undisturbed(budget.resource, kReadingLifetime, usual) / usual;
}

/// Slowdowns that at_reference() divides by; that of the budget's own resource is known.
Drift slowdowns_of(const Budget& budget, double own) {
  switch (budget.resource) {
    case Resource::compute:
      return {own, own};
    case Resource::memory:
      break;
  }
  return {budget.cached_s > 0 ? slowdown_of(budget, Resource::compute) : 1, own};
}

/// Returns whether the median of samples that took `total_s` in total is reliable enough.
bool is_reliable(const Budget& budget, const std::vector<double>& samples, double total_s) {
  if (static_cast<int>(samples.size()) < budget.min_samples) return false;
  if (total_s < budget.seconds) return false;
  if (samples.size() >= kMaxRepeats) return true;
  const TimeStatistics statistics = summarize(samples);
  return statistics.mad_s <= kSteadySpread * statistics.median_s;
}

/// Block of random numbers to copy from: generating them one by one takes longer than most kernels.
const std::vector<float>& random_block() {
  static const std::vector<float> block = [] {
    std::vector<float> values(std::size_t{1} << 14);
    std::uint32_t state = 1;
    for (float& value : values) {
      state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
      value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-33F;
    }
    return values;
  }();
  return block;
}

AlignedVector<float>& shared_buffer() {
  static AlignedVector<float> numbers;
  return numbers;
}

/// Times calls until there are enough samples.
std::vector<double> collect_times(const Budget& budget, const NumberedCall& call,
                                  const NumberedCall& before) {
  std::vector<double> samples;
  const auto start = Clock::now();
  double total = 0;
  for (std::int64_t i = 1; i < kMaxSamples; ++i) {
    if (before) before(i);
    const auto begin = Clock::now();
    call(i);
    const auto end = Clock::now();
    samples.push_back(seconds_between(begin, end));
    total = seconds_between(start, end);
    if (is_reliable(budget, samples, total)) break;
  }
  return samples;
}

}  // namespace

Budget budget_of(Effort effort) noexcept {
  Budget budget;
  budget.effort = effort;
  switch (effort) {
    case Effort::quick:
      budget.rounds = 1;
      budget.min_samples = 2;
      break;
    case Effort::full:
      break;
  }
  return budget;
}

Budget cold_gemm_budget(Budget budget, const std::optional<KernelTime>& cached) noexcept {
  budget.resource = cached ? Resource::memory : Resource::compute;
  budget.cached_s = cached ? cached->seconds : 0;
  return budget;
}

double at_reference(const Budget& budget, double seconds, const Drift& slowdown) noexcept {
  switch (budget.resource) {
    case Resource::compute:
      return seconds / slowdown.compute;
    case Resource::memory:
      break;
  }
  const double cached = std::min(budget.cached_s * slowdown.compute, seconds);
  return cached / slowdown.compute + (seconds - cached) / slowdown.memory;
}

Budget in_one_round(Budget budget) noexcept {
  const auto rounds = static_cast<int>(budget.rounds);
  budget.min_samples *= rounds;
  budget.seconds *= rounds;
  budget.rounds = 1;
  return budget;
}

bool Rounds::allows_another() const {
  if (finished_ == 0) return true;
  const auto done = static_cast<double>(finished_);
  return finished_ < max_rounds_ && seconds_since(start_) * (done + 1) / done <= max_s_;
}

KernelTime time_call(const Budget& budget, const NumberedCall& call, const NumberedCall& before) {
  KernelTime time;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    headroom::detail::throw_if_interrupted();
    const double slowdown_before = undisturbed_slowdown(budget);
    call(0);
    const TimeStatistics statistics = summarize(collect_times(budget, call, before));
    const double slowdown_after = slowdown_of(budget, budget.resource);
    // A call shorter than the clock's resolution gets that resolution.
    const double seconds = std::max(statistics.median_s, 1e-9);
    const Drift slowdown = slowdowns_of(budget, (slowdown_before + slowdown_after) / 2);
    time = {at_reference(budget, seconds, slowdown), statistics.mad_s / seconds};
    if (std::abs(slowdown_after - slowdown_before) <= kSameSpeed * slowdown_before) break;
  }
  return time;
}

void store(KernelTable& table, std::size_t number, const std::optional<KernelTime>& time) {
  if (!time) return;
  table.seconds[number] = time->seconds;
  table.spread[number] = time->spread;
}

KernelTable sweep(const Budget& budget, KernelKind kind, const Point& point) {
  const KernelTable unmeasured = unmeasured_table(kind, calibration_axes(kind, budget.effort));
  std::vector<KernelTable> rounds(budget.rounds, unmeasured);
  for (KernelTable& table : rounds) {
    for (std::size_t number = 0; number < table.seconds.size(); ++number) {
      store(table, number, point(point_of(table.axes, number)));
    }
  }
  return median_of(rounds);
}

KernelTable median_of(const std::vector<KernelTable>& tables) {
  KernelTable table = tables.front();
  for (std::size_t number = 0; number < table.seconds.size(); ++number) {
    if (!table.seconds[number]) continue;
    std::vector<double> times;
    times.reserve(tables.size());
    double spread = 0;
    for (const KernelTable& one : tables) {
      times.push_back(one.seconds[number].value_or(0));
      spread = std::max(spread, one.spread[number]);
    }
    const TimeStatistics statistics = summarize(std::move(times));
    table.seconds[number] = statistics.median_s;
    table.spread[number] = std::max(spread, statistics.mad_s / statistics.median_s);
  }
  return table;
}

AlignedVector<float> random_floats(std::int64_t count) {
  const std::vector<float>& block = random_block();
  AlignedVector<float> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t rest = count; rest > 0;) {
    const std::int64_t some = std::min(rest, static_cast<std::int64_t>(block.size()));
    values.insert(values.end(), block.begin(), block.begin() + some);
    rest -= some;
  }
  return values;
}

void write_rows(AlignedVector<float>& values, std::int64_t width) {
  const std::vector<float>& block = random_block();
  const auto block_size = static_cast<std::int64_t>(block.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(values.size()) / width; ++row) {
    float* const to = values.data() + row * width;
    for (std::int64_t at = 0; at < width; at += block_size) {
      std::copy_n(block.data(), std::min(block_size, width - at), to + at);
    }
  }
}

void read_through(const float* values, std::int64_t count) {
  [[maybe_unused]] volatile float sink = 0;
  sink = read_all(values, count);
}

void evict(const AlignedVector<float>& values) {
  if (flush_lines(values.data(), static_cast<std::int64_t>(values.size()))) return;
  const std::int64_t count = uncached_bytes() / 4;
  read_through(shared_floats(count), count);
}

void read_unrelated_memory(std::int64_t i) {
  constexpr std::int64_t kSlices = 4;
  constexpr std::int64_t kSlice = kCycleBytes / 8;  // 4 MiB
  static const AlignedVector<float> unrelated = random_floats(kSlices * kSlice);
  read_through(unrelated.data() + i % kSlices * kSlice, kSlice);
}

const float* shared_floats(std::int64_t count) {
  constexpr std::int64_t kStep = std::int64_t{16} << 20;  // grows in large steps, so seldom
  AlignedVector<float>& numbers = shared_buffer();
  if (static_cast<std::int64_t>(numbers.size()) < count) {
    numbers = {};  // frees first: both together may exceed memory
    numbers = random_floats(round_up(count, kStep));
  }
  return numbers.data();
}

void release_shared_floats() { shared_buffer() = {}; }

}  // namespace headroom::measured
