#include "gauge.h"

#include <omp.h>

#include <algorithm>
#include <array>

#include "clock.h"
#include "sweep.h"
#include "thread_limit.h"

namespace headroom::measured {
namespace {

constexpr std::int64_t kGaugeRows = 112;
constexpr std::int64_t kGaugeFewRows = 32;
constexpr std::int64_t kGaugeWidth = 1088;
constexpr std::size_t kGaugeSamples = 3;
/// Readings above this multiple of the usual one are disturbances, not drift.
constexpr double kDisturbedRatio = 1.3;

/// Median time of call(0), call(1), …
template <class Call>
double median_call_time(const Call& call) {
  std::array<double, kGaugeSamples> samples{};
  for (std::size_t i = 0; i < kGaugeSamples; ++i) {
    const auto start = Clock::now();
    call(static_cast<std::int64_t>(i));
    samples[i] = seconds_since(start);
  }
  std::ranges::sort(samples);
  return samples[kGaugeSamples / 2];
}

/// Median of the readings that are not disturbed; `best_s` without any.
double usual_of(std::vector<double> readings_s, double best_s) {
  std::erase_if(readings_s, [&](double one) { return one > kDisturbedRatio * best_s; });
  return readings_s.empty() ? best_s : summarize(std::move(readings_s)).median_s;
}

}  // namespace

Gauge::Gauge(Backend backend, int threads, std::int64_t memory_bytes)
    : threads_(threads),
      x_(random_floats(kGaugeRows * kGaugeWidth)),
      y_(random_floats(kGaugeRows * kGaugeWidth)),
      memory_(random_floats(memory_bytes / 4)) {
  require_threads(threads);
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const AlignedVector<float> weight = random_floats(kGaugeWidth * kGaugeWidth);
  const LinearPart part{weight, {}};
  linear_ = std::make_unique<PackedLinear>(
      std::span(&part, 1), kGaugeWidth,
      LinearOptions{backend, Epilogue::none, RowRange::many, kGaugeRows});
  linear_->prepare(kGaugeRows);
  linear_->prepare(kGaugeFewRows);
  omp_set_num_threads(before);
  (void)read();
}

Gauge::~Gauge() = default;

double seconds_of(const GaugeReading& reading, Resource resource) noexcept {
  switch (resource) {
    case Resource::compute:
      return reading.compute_s;
    case Resource::memory:
      break;
  }
  return reading.memory_s;
}

Gauge::TimedReading& Gauge::last(Resource resource) {
  switch (resource) {
    case Resource::compute:
      return compute_;
    case Resource::memory:
      break;
  }
  return memory_reading_;
}

void Gauge::read(Resource resource) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads_);
  const auto multiply = [&](std::int64_t /*i*/) { linear_->run(x_.data(), y_.data(), kGaugeRows); };
  // Reads one part at a time; all other parts are read before it is read again.
  const auto part = static_cast<std::int64_t>(memory_.size() / kGaugeSamples);
  const auto read_part = [&](std::int64_t i) { read_through(memory_.data() + i * part, part); };
  double seconds = 0;
  switch (resource) {
    case Resource::compute:
      multiply(0);  // reloads its weights into the cache
      seconds = median_call_time(multiply);
      break;
    case Resource::memory:
      seconds = kGaugeSamples * median_call_time(read_part);
      break;
  }
  omp_set_num_threads(before);
  TimedReading& reading = last(resource);
  reading.seconds = seconds;
  reading.taken = Clock::now();
  reading.all_seconds.push_back(seconds);
}

void Gauge::lower_clock() { linear_->run(x_.data(), y_.data(), kGaugeFewRows); }

GaugeReading Gauge::read() {
  read(Resource::memory);
  read(Resource::compute);
  return {compute_.seconds, memory_reading_.seconds};
}

GaugeReading Gauge::usual(const GaugeReading& best) const {
  return {usual_of(compute_.all_seconds, best.compute_s),
          usual_of(memory_reading_.all_seconds, best.memory_s)};
}

double Gauge::recent(Resource resource, double max_age_s) {
  const TimedReading& known = last(resource);
  if (seconds_since(known.taken) > max_age_s) read(resource);
  return known.seconds;
}

double Gauge::undisturbed(Resource resource, double max_age_s, double usual_s) {
  double seconds = recent(resource, max_age_s);
  const auto start = Clock::now();
  double waited = 0;
  while (seconds > kDisturbedRatio * usual_s && waited < patience_s_) {
    read(resource);
    seconds = last(resource).seconds;
    waited = seconds_since(start);
  }
  patience_s_ -= waited;
  return seconds;
}

}  // namespace headroom::measured
