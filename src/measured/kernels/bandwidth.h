// Plain reading and writing of memory by all threads: the upper bound of any kernel's bandwidth.
#pragma once

#include <cstdint>

namespace headroom::measured {

/// Returns the sum of `count` values; its cost is reading them.
float read_all(const float* values, std::int64_t count);

/// Writes `value` to all `count` values.
void write_all(float* values, std::int64_t count, float value);

/// Flushes `count` values from all caches. Returns false if the processor has no instruction for
/// it.
bool flush_lines(const float* values, std::int64_t count);

}  // namespace headroom::measured
