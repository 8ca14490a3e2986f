// Timing of single points, and of a kernel's grid. Internal to src/measured/calibrate.
#pragma once

#include <functional>
#include <optional>

#include "calibrate.h"
#include "clock.h"
#include "gauge.h"
#include "kernels/aligned.h"

namespace headroom::measured {

/// Time to spend on one point, and the gauge to normalise by.
struct Budget {
  Effort effort = Effort::full;
  /// Rounds over a whole table. A shared machine changes by the second, so samples that are far
  /// apart tell more.
  std::size_t rounds = 3;
  int min_samples = 1;  ///< minimum samples per point and round
  double seconds = 0.0007;
  Gauge* gauge = nullptr;
  GaugeReading reference;  ///< gauge reading that times are normalised to
  Resource resource = Resource::compute;
  /// Part of a memory-bound time, at the reference, that does not depend on memory's speed.
  double cached_s = 0;
};

/// Budget of GEMMs whose weights come from memory. `cached` is their time with cached weights at
/// the reference. Rows so many that it was not measured leave the weights no part of the time: all
/// of it scales with compute.
[[nodiscard]] Budget cold_gemm_budget(Budget budget,
                                      const std::optional<KernelTime>& cached) noexcept;

/// `seconds` of a call while the gauge takes `slowdown` times its reference, at the reference: the
/// cached part scales with compute, the rest with the budget's resource. Predictions apply a drift
/// to the same parts.
[[nodiscard]] double at_reference(const Budget& budget, double seconds,
                                  const Drift& slowdown) noexcept;

[[nodiscard]] Budget budget_of(Effort effort) noexcept;

/// Budget with all samples of a point in one round, for operands that take longer to make than the
/// kernel runs.
[[nodiscard]] Budget in_one_round(Budget budget) noexcept;

/// Limits rounds in number and time, but allows at least one: a calibration must take less than a
/// minute on machines with slow memory or large caches too.
class Rounds {
 public:
  Rounds(std::size_t max_rounds, double max_s) : max_rounds_(max_rounds), max_s_(max_s) {}

  /// Returns whether another round is allowed, if it takes as long as the ones before.
  [[nodiscard]] bool allows_another() const;

  void finish_round() { ++finished_; }
  [[nodiscard]] std::size_t finished() const { return finished_; }

 private:
  std::size_t max_rounds_;
  double max_s_;
  std::size_t finished_ = 0;
  Clock::time_point start_ = Clock::now();
};

/// Call number `i`, or its preparation.
using NumberedCall = std::function<void(std::int64_t i)>;

/// Median time of `call(i)`, i = 0, 1, 2, …, after one untimed call, normalised to the gauge's
/// reference. A call longer than the budget is repeated until its times agree. `before(i)`, if
/// given, runs untimed before each call.
[[nodiscard]] KernelTime time_call(const Budget& budget, const NumberedCall& call,
                                   const NumberedCall& before = {});

/// Measures a point of a grid; empty if it would take too long.
using Point = std::function<std::optional<KernelTime>(const KernelSizes& sizes)>;

/// Stores a time in a table, if there is one.
void store(KernelTable& table, std::size_t number, const std::optional<KernelTime>& time);

/// Measures every point of the kernel's grid at the budget's effort, in rounds.
[[nodiscard]] KernelTable sweep(const Budget& budget, KernelKind kind, const Point& point);

/// Measures every point of a grid with `time`, except points of more than `max_work` multiply–adds.
template <class Make>
KernelTable sweep_up_to(const Budget& budget, KernelKind kind, double max_work, const Make& time) {
  return sweep(budget, kind, [&](const KernelSizes& sizes) {
    if (work_of(kind, sizes) > max_work) return std::optional<KernelTime>();
    return std::optional(time(sizes));
  });
}

/// Converts a size of a grid to an integer.
[[nodiscard]] inline std::int64_t to_integer(double size) {
  return static_cast<std::int64_t>(size);
}

/// Median of several measurements of one table, point by point, so that one disturbance does not
/// count. The spread is the larger of the spread within a table and the spread between tables.
[[nodiscard]] KernelTable median_of(const std::vector<KernelTable>& tables);

/// Maximum multiply–adds per point; larger points would take too long.
inline constexpr double kMaxWork = 1e9;

/// Bytes of operands to cycle through, so that they come from the last-level cache as a layer's do:
/// weights have evicted them from the nearer caches.
inline constexpr std::int64_t kCycleBytes = std::int64_t{8} << 20;

/// Reads unrelated memory, more than the nearer caches hold, as a layer's weights are read before
/// its attention. Without it the processor prefetches from one KV-cache into the next, which saves
/// a third of a short read.
void read_unrelated_memory(std::int64_t i);

/// Returns small random numbers. They are written, so no page is the shared zero page.
[[nodiscard]] AlignedVector<float> random_floats(std::int64_t count);

/// Writes small random numbers to rows of `width` floats. Each thread writes contiguous rows, like
/// the kernels.
void write_rows(AlignedVector<float>& values, std::int64_t width);

/// Reads `count` values; the compiler cannot drop the reads.
void read_through(const float* values, std::int64_t count);

/// Evicts the values from all caches.
void evict(const AlignedVector<float>& values);

/// Returns `count` small random numbers to read only, in memory that all probes share. They stay
/// valid until more are requested, or until release.
[[nodiscard]] const float* shared_floats(std::int64_t count);
void release_shared_floats();

}  // namespace headroom::measured
