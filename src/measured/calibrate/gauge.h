// A gauge of how fast the machine is just now. Virtual machines share cores: the same product may
// take half as long again a second later. Every time that is kept is therefore taken in units of a
// fixed product, or a fixed read of memory, that ran beside it.
#pragma once

#include <memory>

#include "clock.h"
#include "kernels/aligned.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// Seconds that the fixed product and the fixed read take.
struct GaugeReading {
  double compute_s = 0;
  double memory_s = 0;
};

/// What a kernel's time goes up and down with.
enum class Pace { compute, memory };

/// The reading of one pace.
[[nodiscard]] double seconds_of(const GaugeReading& reading, Pace pace) noexcept;

class Gauge {
 public:
  /// Measures with `threads` threads, however many are set elsewhere; `memory_bytes` are read,
  /// which no cache should hold.
  Gauge(Backend backend, int threads, std::int64_t memory_bytes);
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;
  ~Gauge();

  /// Takes a reading now: some twenty milliseconds.
  GaugeReading read();

  /// Runs a short product: a processor that lowers its clock for wide multiply-adds keeps it low
  /// for a while, and a model's kernels are never far from a product.
  void lower_clock();

  /// The last reading of `pace`, or a new one where that is older than `most_s` seconds. The other
  /// pace is left alone, since reading memory takes longer and empties the caches.
  double recent(Pace pace, double most_s);

  /// Likewise, but where the reading is far above `usual_s`, since others were given the processors
  /// for a moment, one that comes after that. It waits so for two seconds in all, and then takes
  /// what comes.
  double settled(Pace pace, double most_s, double usual_s);

 private:
  struct Last {
    double seconds = 0;
    Clock::time_point taken;
  };

  void read(Pace pace);
  [[nodiscard]] Last& last(Pace pace);

  int threads_;
  AlignedVector<float> x_;
  AlignedVector<float> y_;
  AlignedVector<float> memory_;
  std::unique_ptr<PackedLinear> linear_;
  Last compute_;
  Last memory_reading_;
  double patience_s_ = 2;
};

}  // namespace headroom::measured
