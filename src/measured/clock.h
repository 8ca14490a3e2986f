// The clock that runs are timed by. Internal to src/measured.
#pragma once

#include <chrono>

namespace headroom::measured {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace headroom::measured
