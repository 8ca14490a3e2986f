// Gauge of the machine's current speed. Virtual machines share cores, so the same matrix product
// may take half as long again a second later. Therefore every stored time is relative to a fixed
// matrix product, or a fixed read of memory, that ran next to it.
#pragma once

#include <memory>
#include <vector>

#include "clock.h"
#include "kernels/aligned.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// Seconds of the fixed matrix product and of the fixed read.
struct GaugeReading {
  double compute_s = 0;
  double memory_s = 0;
};

/// Resource that limits a kernel: its time scales with the gauge's time for it.
enum class Resource { compute, memory };

/// Returns the reading for one resource.
[[nodiscard]] double seconds_of(const GaugeReading& reading, Resource resource) noexcept;

class Gauge {
 public:
  /// Measures with `threads` threads, whatever omp_get_max_threads() is. Reads `memory_bytes`,
  /// which must exceed every cache.
  Gauge(Backend backend, int threads, std::int64_t memory_bytes);
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;
  ~Gauge();

  /// Takes a reading, in about twenty milliseconds.
  GaugeReading read();

  /// Medians of all readings so far but for those that another process disturbed, which are far
  /// above `best`: the machine's usual speed. `best` itself if all were disturbed.
  [[nodiscard]] GaugeReading usual(const GaugeReading& best) const;

  /// Runs a short matrix product. Processors that lower their clock for wide multiply–adds keep it
  /// low for a while, and in a model every kernel runs close to a matrix product.
  void lower_clock();

  /// Returns the last reading for `resource`, or a new one if that is older than `max_age_s`.
  /// Leaves the other resource alone: reading memory takes longer and empties the caches.
  double recent(Resource resource, double max_age_s);

  /// Like `recent`, but while the reading is far above `usual_s` (another process has the
  /// processors), repeats it. Waits two seconds in total over the gauge's life, then accepts any
  /// reading.
  double undisturbed(Resource resource, double max_age_s, double usual_s);

 private:
  struct TimedReading {
    double seconds = 0;
    Clock::time_point taken;
    std::vector<double> all_seconds{};  ///< of every reading
  };

  void read(Resource resource);
  [[nodiscard]] TimedReading& last(Resource resource);

  int threads_;
  AlignedVector<float> x_;
  AlignedVector<float> y_;
  AlignedVector<float> memory_;
  std::unique_ptr<PackedLinear> linear_;
  TimedReading compute_;
  TimedReading memory_reading_;
  double patience_s_ = 2;
};

}  // namespace headroom::measured
