// Size of the last-level cache as a program sees it. Machines that share a processor get a part of
// its cache, so the reported size is too large; the speed of reads shows the part. Internal to
// src/measured.
#pragma once

#include <cstdint>
#include <span>

#include "headroom/machine_profile.h"

namespace headroom::measured {

/// Size of the largest cache that the system reports, in bytes; 32 MiB if it reports none.
[[nodiscard]] std::int64_t reported_last_level_cache_bytes();

/// Read bandwidth of one thread, for working sets around the size of the last-level cache; the last
/// set exceeds any cache. Measured at the first call, in up to two seconds for a large cache.
[[nodiscard]] std::span<const BandwidthPoint> reads_around_last_cache();

/// Smallest working set from which on reads are at most `ratio` times as fast as the last one.
[[nodiscard]] std::int64_t working_set_within(std::span<const BandwidthPoint> reads, double ratio);

/// Estimates the usable part of the last-level cache from `reads`: half of the smallest working set
/// that is read at most a tenth faster than memory, and so hardly hits the cache; at most
/// `reported`.
[[nodiscard]] std::int64_t estimated_last_level_cache_bytes(std::span<const BandwidthPoint> reads,
                                                            std::int64_t reported);

/// Usable part of this machine's last-level cache, in bytes.
[[nodiscard]] std::int64_t last_level_cache_bytes();

/// Working set that hardly hits a last-level cache of that size when read cyclically. It is well
/// beyond the cache: a cache that does not evict the oldest line first keeps some of a cycle, and
/// cores may each have a cache of that size.
[[nodiscard]] std::int64_t uncached_bytes(std::int64_t last_level_cache_bytes);

/// uncached_bytes of this machine's last-level cache.
[[nodiscard]] std::int64_t uncached_bytes();

/// Working set whose cyclic reads are as slow as memory, to within a few hundredths. What remains
/// of smaller sets in a cache makes a stream of weights up to a tenth faster than in a large model.
[[nodiscard]] std::int64_t streamed_bytes();

}  // namespace headroom::measured
