// The event loop: arrivals, ends of steps and transfers of caches, in the order of time. Internal
// to src/serve.
#pragma once

#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "late_requests.h"
#include "replica.h"

namespace headroom::detail {

/// A prompt's cache on its way to the replica that decodes.
struct Transfer {
  double end_s = 0;
  std::size_t request = 0;
  bool operator>(const Transfer& other) const {
    return std::tie(end_s, request) > std::tie(other.end_s, other.request);
  }
};

/// All requests on all replicas, from the first arrival to the last token. With disaggregation, the
/// first replicas prefill and the others decode.
class EventLoop {
 public:
  /// `transfer_s` gives the seconds that the cache of so many tokens takes between replicas.
  EventLoop(std::span<Replica> replicas, std::vector<Progress>& progress,
            std::int64_t prefill_replicas, std::function<double(std::int64_t)> transfer_s);

  /// Ends before that once targets are missed.
  void run(LateRequests& late);
  /// Seconds of all transfers together.
  [[nodiscard]] double transferred_s() const { return transferred_s_; }

 private:
  [[nodiscard]] double next_arrival_s() const;
  [[nodiscard]] double next_transfer_s() const;
  /// Starts the replica's steps.
  void start(Replica& replica, double now_s);
  void arrive(double now_s);
  void end_transfer(double now_s);
  void end_step(Replica& replica, double now_s, LateRequests& late);
  /// Each answered user sends the next request at once.
  void send_next(Replica& replica, double now_s);

  std::span<Replica> replicas_;
  std::span<Replica> first_;     ///< to which requests go
  std::span<Replica> decoding_;  ///< to which prefilled requests go
  std::vector<Progress>* progress_;
  std::function<double(std::int64_t)> transfer_s_;
  std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> transfers_;
  double transferred_s_ = 0;
  std::size_t next_ = 0;
};

}  // namespace headroom::detail
