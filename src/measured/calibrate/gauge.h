// A gauge of how fast the machine is just now. Virtual machines share cores: the same product may
// take half as long again a second later. Every time that is kept is therefore taken in units of a
// fixed product, or a fixed read of memory, that ran beside it.
#pragma once

#include <chrono>
#include <memory>

#include "kernels/aligned.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// Seconds that the fixed product and the fixed read take.
struct GaugeReading {
  double compute_s = 0;
  double memory_s = 0;
};

class Gauge {
 public:
  /// Measures with `threads` threads, however many are set elsewhere.
  Gauge(Backend backend, int threads);
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;
  ~Gauge();

  /// Takes a reading now: some ten milliseconds.
  GaugeReading read();

  /// The last reading, or a new one where that is older than `most_s` seconds.
  const GaugeReading& recent(double most_s);

 private:
  using Clock = std::chrono::steady_clock;

  int threads_;
  AlignedVector<float> x_;
  AlignedVector<float> y_;
  AlignedVector<float> memory_;
  std::unique_ptr<PackedLinear> linear_;
  GaugeReading last_;
  Clock::time_point taken_;
};

}  // namespace headroom::measured
