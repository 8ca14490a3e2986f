#include "sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "clock.h"
#include "kernels/bandwidth.h"
#include "last_cache.h"

namespace headroom::measured {
namespace {

constexpr std::int64_t kMostSamples = 2000;
/// A reading of the gauge holds for so long.
constexpr double kFresh = 0.15;
/// Long calls are repeated while they differ by more, and at most so often.
constexpr double kSteadyShare = 0.03;
constexpr std::size_t kPatience = 5;
/// What was measured while the pace changed by more is measured again, a few times at most.
constexpr double kSamePace = 0.15;
constexpr int kAttempts = 3;

double pace_of(const Budget& budget, Pace pace) {
  if (budget.gauge == nullptr) return 1;
  return budget.gauge->recent(pace, kFresh) / seconds_of(budget.reference, pace);
}

/// Likewise, once others leave the processors alone.
double settled_pace(const Budget& budget) {
  if (budget.gauge == nullptr) return 1;
  const double usual = seconds_of(budget.reference, budget.pace);
  return budget.gauge->settled(budget.pace, kFresh, usual) / usual;
}

/// Seconds as they would be were the gauge at its reference: what a cache would take goes up and
/// down with the products, the rest with the budget's pace, which was `pace`.
double at_reference(const Budget& budget, double seconds, double pace) {
  if (budget.cached_s == 0) return seconds / pace;
  const double compute = pace_of(budget, Pace::compute);
  const double cached = std::min(budget.cached_s * compute, seconds);
  return cached / compute + (seconds - cached) / pace;
}

/// Whether the median of samples that took `total_s` together is worth keeping.
bool is_enough(const Budget& budget, const std::vector<double>& samples, double total_s) {
  if (static_cast<int>(samples.size()) < budget.fewest_samples) return false;
  if (total_s < budget.seconds) return false;
  if (samples.size() >= kPatience) return true;
  const TimeStatistics statistics = summarize(samples);
  return statistics.mad_s <= kSteadyShare * statistics.median_s;
}

/// A block of numbers that is copied, since making them one by one takes longer than most kernels.
const std::vector<float>& block_of_numbers() {
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

AlignedVector<float>& shared() {
  static AlignedVector<float> numbers;
  return numbers;
}

/// The times of calls until there are enough.
std::vector<double> sample(const Budget& budget, const NumberedCall& call,
                           const NumberedCall& before) {
  std::vector<double> samples;
  const auto start = Clock::now();
  double total = 0;
  for (std::int64_t i = 1; i < kMostSamples; ++i) {
    if (before) before(i);
    const auto begin = Clock::now();
    call(i);
    const auto end = Clock::now();
    samples.push_back(seconds_between(begin, end));
    total = seconds_between(start, end);
    if (is_enough(budget, samples, total)) break;
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
      budget.fewest_samples = 2;
      break;
    case Effort::full:
      break;
  }
  return budget;
}

Budget in_one_round(Budget budget) noexcept {
  const auto rounds = static_cast<int>(budget.rounds);
  budget.fewest_samples *= rounds;
  budget.seconds *= rounds;
  budget.rounds = 1;
  return budget;
}

bool Rounds::go_on() const {
  if (done_ == 0) return true;
  const auto done = static_cast<double>(done_);
  return done_ < most_ && seconds_since(start_) * (done + 1) / done <= most_s_;
}

KernelTime time_call(const Budget& budget, const NumberedCall& call, const NumberedCall& before) {
  KernelTime time;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double pace_before = settled_pace(budget);
    call(0);
    const TimeStatistics statistics = summarize(sample(budget, call, before));
    const double pace_after = pace_of(budget, budget.pace);
    // The clock's own resolution is what is left of a call that takes nothing.
    const double seconds = std::max(statistics.median_s, 1e-9);
    time = {at_reference(budget, seconds, (pace_before + pace_after) / 2),
            statistics.mad_s / seconds};
    if (std::abs(pace_after - pace_before) <= kSamePace * pace_before) break;
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

AlignedVector<float> filled(std::int64_t count) {
  const std::vector<float>& block = block_of_numbers();
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
  const std::vector<float>& block = block_of_numbers();
  const auto most = static_cast<std::int64_t>(block.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(values.size()) / width; ++row) {
    float* const to = values.data() + row * width;
    for (std::int64_t at = 0; at < width; at += most) {
      std::copy_n(block.data(), std::min(most, width - at), to + at);
    }
  }
}

void drive_out(const AlignedVector<float>& values) {
  if (flush_lines(values.data(), static_cast<std::int64_t>(values.size()))) return;
  [[maybe_unused]] volatile float kept = 0;  // so that the compiler has to read
  const std::int64_t count = uncached_bytes() / 4;
  kept = read_all(shared_numbers(count), count);
}

void read_others(std::int64_t i) {
  constexpr std::int64_t kSlices = 4;
  constexpr std::int64_t kSlice = kNearBytes / 8;  // 4 MiB
  static const AlignedVector<float> others = filled(kSlices * kSlice);
  [[maybe_unused]] volatile float kept = 0;  // so that the compiler has to read
  kept = read_all(others.data() + i % kSlices * kSlice, kSlice);
}

const float* shared_numbers(std::int64_t count) {
  constexpr std::int64_t kStep = std::int64_t{16} << 20;  // so that it seldom grows
  AlignedVector<float>& numbers = shared();
  if (static_cast<std::int64_t>(numbers.size()) < count) {
    numbers = {};  // first, since both may be more than there is
    numbers = filled((count + kStep - 1) / kStep * kStep);
  }
  return numbers.data();
}

void release_shared_numbers() { shared() = {}; }

}  // namespace headroom::measured
