#include "gauge.h"

#include <omp.h>

#include <algorithm>
#include <array>

#include "clock.h"
#include "kernels/bandwidth.h"
#include "sweep.h"

namespace headroom::measured {
namespace {

constexpr std::int64_t kRows = 112;
constexpr std::int64_t kFewRows = 32;
constexpr std::int64_t kWidth = 1088;
constexpr std::size_t kSamples = 3;
/// A reading that is so many times the usual one is no drift.
constexpr double kDisturbed = 1.3;

/// The median of call(0), call(1), ….
template <class Call>
double median_time(const Call& call) {
  std::array<double, kSamples> samples{};
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto start = Clock::now();
    call(static_cast<std::int64_t>(i));
    samples[i] = seconds_since(start);
  }
  std::ranges::sort(samples);
  return samples[kSamples / 2];
}

}  // namespace

Gauge::Gauge(Backend backend, int threads, std::int64_t memory_bytes)
    : threads_(threads),
      x_(filled(kRows * kWidth)),
      y_(filled(kRows * kWidth)),
      memory_(filled(memory_bytes / 4)) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const AlignedVector<float> weight = filled(kWidth * kWidth);
  const LinearPart part{weight, {}};
  linear_ = std::make_unique<PackedLinear>(
      std::span(&part, 1), kWidth, LinearOptions{backend, Epilogue::none, RowRange::many, kRows});
  linear_->prepare(kRows);
  linear_->prepare(kFewRows);
  omp_set_num_threads(before);
  (void)read();
}

Gauge::~Gauge() = default;

double seconds_of(const GaugeReading& reading, Pace pace) noexcept {
  switch (pace) {
    case Pace::compute:
      return reading.compute_s;
    case Pace::memory:
      break;
  }
  return reading.memory_s;
}

Gauge::Last& Gauge::last(Pace pace) {
  switch (pace) {
    case Pace::compute:
      return compute_;
    case Pace::memory:
      break;
  }
  return memory_reading_;
}

void Gauge::read(Pace pace) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads_);
  const auto multiply = [&](std::int64_t /*i*/) { linear_->run(x_.data(), y_.data(), kRows); };
  volatile float kept = 0;  // so that the compiler has to read
  // A part at a time, so that each was last read when all others have been since.
  const auto part = static_cast<std::int64_t>(memory_.size() / kSamples);
  const auto read_part = [&](std::int64_t i) { kept = read_all(memory_.data() + i * part, part); };
  double seconds = 0;
  switch (pace) {
    case Pace::compute:
      multiply(0);  // brings its weights back into the cache
      seconds = median_time(multiply);
      break;
    case Pace::memory:
      seconds = kSamples * median_time(read_part);
      break;
  }
  omp_set_num_threads(before);
  last(pace) = {seconds, Clock::now()};
}

void Gauge::lower_clock() { linear_->run(x_.data(), y_.data(), kFewRows); }

GaugeReading Gauge::read() {
  read(Pace::memory);
  read(Pace::compute);
  return {compute_.seconds, memory_reading_.seconds};
}

double Gauge::recent(Pace pace, double most_s) {
  const Last& known = last(pace);
  if (seconds_since(known.taken) > most_s) read(pace);
  return known.seconds;
}

double Gauge::settled(Pace pace, double most_s, double usual_s) {
  double seconds = recent(pace, most_s);
  const auto start = Clock::now();
  double waited = 0;
  while (seconds > kDisturbed * usual_s && waited < patience_s_) {
    read(pace);
    seconds = last(pace).seconds;
    waited = seconds_since(start);
  }
  patience_s_ -= waited;
  return seconds;
}

}  // namespace headroom::measured
