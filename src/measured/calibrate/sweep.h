// Timing of single points, and of a kernel's whole grid. Internal to src/measured/calibrate.
#pragma once

#include <functional>
#include <optional>

#include "calibrate.h"
#include "clock.h"
#include "gauge.h"
#include "kernels/aligned.h"

namespace headroom::measured {

/// How long to measure one point, and in units of what.
struct Budget {
  Effort effort = Effort::full;
  /// How often a whole table is measured: a machine that is shared changes by the second, so that
  /// samples tell more when they are apart.
  std::size_t rounds = 3;
  int fewest_samples = 1;  ///< of a point in a round
  double seconds = 0.0007;
  Gauge* gauge = nullptr;
  GaugeReading reference;  ///< at which times are given
  Pace pace = Pace::compute;
  double cached_s =
      0;  ///< at the reference: what the memory's pace does not move, where it is that
};

[[nodiscard]] Budget budget_of(Effort effort) noexcept;

/// The same time for all samples of a point at once: where making the operands takes longer than
/// the kernel does.
[[nodiscard]] Budget in_one_round(Budget budget) noexcept;

/// Counts rounds, of which there are fewer where they take long, but one in any case: a calibration
/// is to take less than a minute on machines with slow memory or much cache too.
class Rounds {
 public:
  Rounds(std::size_t most, double most_s) : most_(most), most_s_(most_s) {}

  /// Whether one more is within the time, if it takes as long as those so far.
  [[nodiscard]] bool go_on() const;

  void done() { ++done_; }
  [[nodiscard]] std::size_t number() const { return done_; }

 private:
  std::size_t most_;
  double most_s_;
  std::size_t done_ = 0;
  Clock::time_point start_ = Clock::now();
};

/// A call, or what comes before it, of which `i` is the number.
using NumberedCall = std::function<void(std::int64_t i)>;

/// Median time of `call(i)`, i = 0, 1, 2, …, after one that does not count; as it would be were the
/// gauge at its reference. A call that is longer than the budget is repeated until its times agree.
/// `before(i)`, where there is one, runs before each call and takes none of its time.
[[nodiscard]] KernelTime time_call(const Budget& budget, const NumberedCall& call,
                                   const NumberedCall& before = {});

/// Measures a point of a grid; none where it would take too long.
using Point = std::function<std::optional<KernelTime>(const KernelSizes& sizes)>;

/// Puts a time into a table, if there is one.
void store(KernelTable& table, std::size_t number, const std::optional<KernelTime>& time);

/// Measures every point of the kernel's grid at the budget's effort, in rounds.
[[nodiscard]] KernelTable sweep(const Budget& budget, KernelKind kind, const Point& point);

/// Measures with `time` every point of a grid, but for those of more than `most` multiply-adds.
template <class Make>
KernelTable sweep_up_to(const Budget& budget, KernelKind kind, double most, const Make& time) {
  return sweep(budget, kind, [&](const KernelSizes& sizes) {
    if (work_of(kind, sizes) > most) return std::optional<KernelTime>();
    return std::optional(time(sizes));
  });
}

/// A size of a grid as the count that it is.
[[nodiscard]] inline std::int64_t whole(double size) { return static_cast<std::int64_t>(size); }

/// The middle of several measurements of one table, so that a hiccup of one is not kept; spread is
/// the widest within one, or that between them.
[[nodiscard]] KernelTable median_of(const std::vector<KernelTable>& tables);

/// Multiply-adds above which a point is left out: it would take too long.
inline constexpr double kMostWork = 1e9;

/// Bytes of operands that are gone round, so that they come from where a layer's do: from the last
/// cache, since weights have gone through the nearer ones meanwhile.
inline constexpr std::int64_t kNearBytes = std::int64_t{8} << 20;

/// Reads what is none of a kernel's operands, and more than the nearer caches hold, as its layer's
/// weights are before it: a processor that goes on from one KV-cache to the next fetches ahead of
/// itself, which takes a third off a short read.
void read_others(std::int64_t i);

/// Small random numbers, written so that no page is the shared zero page.
[[nodiscard]] AlignedVector<float> filled(std::int64_t count);

/// Writes small random numbers to rows of `width`, each thread to as many rows one after another as
/// kernels do that go through them.
void write_rows(AlignedVector<float>& values, std::int64_t width);

/// Leaves nothing of the values in any cache.
void drive_out(const AlignedVector<float>& values);

/// `count` such numbers to be read only, in memory that all probes share; they stay until more are
/// asked for, or they are released.
[[nodiscard]] const float* shared_numbers(std::int64_t count);
void release_shared_numbers();

}  // namespace headroom::measured
