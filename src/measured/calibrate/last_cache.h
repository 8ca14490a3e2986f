// The last cache as a program sees it. A processor that many machines share gives each a part of
// it, so its size on paper says too much; what reads cost tells. Internal to src/measured.
#pragma once

#include <cstdint>
#include <span>

#include "headroom/machine_profile.h"

namespace headroom::measured {

/// Size of the largest cache by what the system says, in bytes; 32 MiB where it says nothing.
[[nodiscard]] std::int64_t reported_last_level_cache_bytes();

/// Reads around a last cache's size, by one thread: the last goes round more than any cache holds.
/// Measured at the first call, which takes up to two seconds where the cache is a large one.
[[nodiscard]] std::span<const BandwidthPoint> reads_around_last_cache();

/// The smallest working set from which on reads are at most so many times as fast as the last.
[[nodiscard]] std::int64_t working_set_read_within(std::span<const BandwidthPoint> reads,
                                                   double times);

/// The part of the last cache that `reads` show: half of the smallest working set that is read no
/// faster than memory, but for a tenth, and so finds next to nothing of itself; `reported` where
/// that is less.
[[nodiscard]] std::int64_t last_level_cache_shown_by(std::span<const BandwidthPoint> reads,
                                                     std::int64_t reported);

/// The part that this program gets of this machine's.
[[nodiscard]] std::int64_t last_level_cache_bytes();

/// So many bytes that going round them finds hardly any in a cache of that size: well beyond it,
/// since a cache that does not drop the oldest line first keeps some of what goes round, and cores
/// may each have a cache of that size.
[[nodiscard]] std::int64_t uncached_bytes(std::int64_t last_level_cache_bytes);

/// Likewise for this machine's.
[[nodiscard]] std::int64_t uncached_bytes();

/// So many bytes that going round them takes as long as memory does, to a few hundredths: what is
/// left of them in a cache makes a stream of weights up to a tenth faster than a large model's.
[[nodiscard]] std::int64_t streamed_bytes();

}  // namespace headroom::measured
