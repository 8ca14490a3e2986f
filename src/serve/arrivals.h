// Requests of a simulation in their order of arrival. Internal to src/serve.
#pragma once

#include <vector>

#include "headroom/serve.h"

namespace headroom::detail {

/// Longest time over which requests arrive, 30 years: beyond, the times of steps would round to
/// nothing. (Here a double resolves 0.1 µs.)
constexpr double kLongestArrivals_s = 1e9;

/// All requests of `traffic`. Of users, only the first of each has an arrival; later ones arrive
/// when an answer ends, and have an infinite one here.
[[nodiscard]] std::vector<ServeRequest> requests_of(const ServeTraffic& traffic);

/// The requests that arrive in one burst at the start, the first of each user; 0 unless at least as
/// many follow.
[[nodiscard]] std::int64_t warm_up_of(const ServeTraffic& traffic);

}  // namespace headroom::detail
