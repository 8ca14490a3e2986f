// Plain reading and writing of memory by all threads: what nothing can be faster than.
#pragma once

#include <cstdint>

namespace headroom::measured {

/// The sum of `count` values; what it costs is reading them.
float read_all(const float* values, std::int64_t count);

/// Writes `value` to all of them.
void write_all(float* values, std::int64_t count, float value);

/// Drives `count` values out of every cache; false where there is no instruction for that.
bool flush_lines(const float* values, std::int64_t count);

}  // namespace headroom::measured
