#include "last_cache.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "clock.h"
#include "sweep.h"

namespace headroom::measured {
namespace {

/// Factor between successive working sets.
const double kWorkingSetGrowth = std::sqrt(2.0);
/// Reads faster than memory by more than this hit a cache.
constexpr double kUncachedRatio = 1.1;
/// Spread of reads of memory.
constexpr double kMemorySpread = 1.03;

/// Bytes per second of the fastest of a few reads; a read before them fills the cache.
double read_rate(const AlignedVector<float>& values, std::int64_t bytes) {
  constexpr int kReads = 4;
  double best_s = 0;
  for (int i = 0; i <= kReads; ++i) {
    const auto start = Clock::now();
    read_through(values.data(), bytes / 4);
    const double seconds = seconds_since(start);
    if (i > 0) best_s = i == 1 ? seconds : std::min(best_s, seconds);
  }
  return static_cast<double>(bytes) / best_s;
}

/// Reads working sets from well below the reported size to well beyond it, in ascending order:
/// after a larger set a cache needs several reads to fill with a smaller one.
std::vector<BandwidthPoint> read_around(std::int64_t reported) {
  const std::int64_t largest_set = std::max(reported * 5 / 4, uncached_bytes(0));
  const AlignedVector<float> values = random_floats(largest_set / 4);
  std::vector<BandwidthPoint> reads;
  std::int64_t working_set = reported / 16;
  while (working_set < largest_set) {
    reads.push_back({working_set, read_rate(values, working_set)});
    working_set =
        static_cast<std::int64_t>(kWorkingSetGrowth * static_cast<double>(working_set)) + 1;
  }
  reads.push_back({largest_set, read_rate(values, largest_set)});
  return reads;
}

}  // namespace

std::int64_t reported_last_level_cache_bytes() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::int64_t size = 0;
    char unit = 0;
    if (file >> size >> unit) largest = std::max(largest, size * (unit == 'M' ? 1 << 20 : 1 << 10));
  }
  constexpr std::int64_t kUnknown = std::int64_t{32} << 20;
  return largest > 0 ? largest : kUnknown;
}

std::span<const BandwidthPoint> reads_around_last_cache() {
  static const std::vector<BandwidthPoint> reads = [] {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    std::vector<BandwidthPoint> made = read_around(reported_last_level_cache_bytes());
    omp_set_num_threads(before);
    return made;
  }();
  return reads;
}

std::int64_t working_set_within(std::span<const BandwidthPoint> reads, double ratio) {
  const double memory = reads.back().bytes_per_s;
  std::int64_t working_set = reads.back().working_set_bytes;
  for (std::size_t i = reads.size(); i-- > 0 && reads[i].bytes_per_s <= ratio * memory;) {
    working_set = reads[i].working_set_bytes;
  }
  return working_set;
}

std::int64_t estimated_last_level_cache_bytes(std::span<const BandwidthPoint> reads,
                                              std::int64_t reported) {
  return std::min(reported, working_set_within(reads, kUncachedRatio) / 2);
}

std::int64_t last_level_cache_bytes() {
  return estimated_last_level_cache_bytes(reads_around_last_cache(),
                                          reported_last_level_cache_bytes());
}

std::int64_t uncached_bytes(std::int64_t last_level_cache_bytes) {
  constexpr std::int64_t kEnough = std::int64_t{128} << 20;
  return std::max(2 * last_level_cache_bytes, kEnough);
}

std::int64_t uncached_bytes() { return uncached_bytes(last_level_cache_bytes()); }

std::int64_t streamed_bytes() {
  return std::max(uncached_bytes(), working_set_within(reads_around_last_cache(), kMemorySpread));
}

}  // namespace headroom::measured
