#include "arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "headroom/error.h"
#include "visit.h"

namespace headroom::detail {
namespace {

/// Independent arrivals have exponential gaps; by inversion, so that a seed gives the same requests
/// with every standard library.
class ExponentialGaps {
 public:
  ExponentialGaps(double rate, std::uint64_t seed) : rate_(rate), random_(seed) {}

  double next() {
    constexpr unsigned kDiscardedBits = 11;  // a double has 53
    const double uniform = static_cast<double>(random_() >> kDiscardedBits) * 0x1.0p-53;
    return -std::log1p(-uniform) / rate_;
  }

 private:
  double rate_;
  std::mt19937_64 random_;
};

std::vector<ServeRequest> equal_requests(const ServeTraffic& traffic) {
  return std::vector<ServeRequest>(static_cast<std::size_t>(traffic.requests),
                                   {0, traffic.input_tokens, traffic.output_tokens});
}

std::vector<ServeRequest> requests_by(const ServeTraffic& traffic,
                                      const PoissonArrivals& arrivals) {
  std::vector<ServeRequest> requests = equal_requests(traffic);
  ExponentialGaps gaps(arrivals.requests_per_s, traffic.seed);
  double now_s = 0;
  for (ServeRequest& request : requests) {
    request.arrival_s = now_s;
    now_s += gaps.next();
  }
  return requests;
}

std::vector<ServeRequest> requests_by(const ServeTraffic& traffic, const UserArrivals& arrivals) {
  std::vector<ServeRequest> requests = equal_requests(traffic);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const bool later = static_cast<std::int64_t>(i) >= arrivals.users;
    if (later) requests[i].arrival_s = std::numeric_limits<double>::infinity();
  }
  return requests;
}

/// Makes the first arrival the time 0. Throws Error{invalid_input} if requests arrive over more
/// than kLongestArrivals_s.
std::vector<ServeRequest> from_first(std::vector<ServeRequest> requests) {
  double first_s = std::numeric_limits<double>::infinity();
  double last_s = 0;
  for (const ServeRequest& request : requests) {
    first_s = std::min(first_s, request.arrival_s);
    if (std::isfinite(request.arrival_s)) last_s = std::max(last_s, request.arrival_s);
  }
  if (last_s - first_s > kLongestArrivals_s) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("the requests arrive over {:.3g} s, of which at most {:.0e} s can be "
                            "simulated",
                            last_s - first_s, kLongestArrivals_s),
                {}, "use a higher rate, fewer requests, or a part of the trace");
  }
  for (ServeRequest& request : requests) request.arrival_s -= first_s;
  return requests;
}

}  // namespace

std::vector<ServeRequest> requests_of(const ServeTraffic& traffic) {
  return from_first(std::visit(
      Overloaded{
          [&](const PoissonArrivals& arrivals) { return requests_by(traffic, arrivals); },
          [&](const UserArrivals& arrivals) { return requests_by(traffic, arrivals); },
          [](const TraceArrivals& arrivals) { return arrivals.requests; },
      },
      traffic.arrivals));
}

std::int64_t warm_up_of(const ServeTraffic& traffic) {
  const auto* const arrivals = std::get_if<UserArrivals>(&traffic.arrivals);
  const bool come_back = arrivals != nullptr && traffic.requests / 2 >= arrivals->users;
  return come_back ? arrivals->users : 0;
}

}  // namespace headroom::detail
