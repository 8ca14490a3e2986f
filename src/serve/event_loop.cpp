#include "event_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace headroom::detail {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The replica with the fewest requests.
Replica& idlest(std::span<Replica> replicas) {
  return *std::ranges::min_element(replicas, {}, &Replica::outstanding);
}

}  // namespace

EventLoop::EventLoop(std::span<Replica> replicas, std::vector<Progress>& progress,
                     std::int64_t prefill_replicas, std::function<double(std::int64_t)> transfer_s)
    : replicas_(replicas), progress_(&progress), transfer_s_(std::move(transfer_s)) {
  const auto prefilling = static_cast<std::size_t>(prefill_replicas);
  first_ = prefilling == 0 ? replicas_ : replicas_.first(prefilling);
  decoding_ = replicas_.subspan(prefilling);
}

double EventLoop::next_arrival_s() const {
  if (next_ == progress_->size()) return kNever;
  return (*progress_)[next_].request.arrival_s;
}

double EventLoop::next_transfer_s() const {
  if (transfers_.empty()) return kNever;
  return transfers_.top().end_s;
}

void EventLoop::start(Replica& replica, double now_s) {
  double horizon_s = next_arrival_s();
  // Other replicas send prompts, and the next requests of users.
  if (decoding_.size() < replicas_.size()) {
    horizon_s = std::min(horizon_s, next_transfer_s());
    for (const Replica& other : replicas_) {
      if (&other != &replica) horizon_s = std::min(horizon_s, other.next_end_s());
    }
  }
  replica.start_steps(now_s, horizon_s);
}

void EventLoop::run(LateRequests& late) {
  while (!late.missed()) {
    Replica& replica = *std::ranges::min_element(replicas_, {}, &Replica::next_end_s);
    const double end_s = replica.next_end_s();
    const double arrival_s = next_arrival_s();
    const double transfer_s = next_transfer_s();
    const double next_s = std::min({end_s, arrival_s, transfer_s});
    if (next_s == kNever) return;
    if (arrival_s == next_s) {
      arrive(arrival_s);
    } else if (transfer_s == next_s) {
      end_transfer(transfer_s);
    } else {
      end_step(replica, end_s, late);
    }
  }
}

void EventLoop::arrive(double now_s) {
  idlest(first_).add(next_++, now_s);
  // Requests of one moment may share a step.
  if (next_arrival_s() > now_s) {
    for (Replica& one : replicas_) start(one, now_s);
  }
}

void EventLoop::end_transfer(double now_s) {
  Replica& replica = idlest(decoding_);
  replica.add_prefilled(transfers_.top().request, now_s);
  transfers_.pop();
  start(replica, now_s);
}

void EventLoop::end_step(Replica& replica, double now_s, LateRequests& late) {
  const Replica::Leaving leaving = replica.end_step();
  for (const std::size_t request : leaving.prefilled) {
    const double seconds = transfer_s_((*progress_)[request].request.input_tokens);
    transferred_s_ += seconds;
    transfers_.push({now_s + seconds, request});
  }
  for (const std::size_t request : leaving.answered) {
    late.add(request);
    send_next(replica, now_s);
  }
  start(replica, now_s);
}

void EventLoop::send_next(Replica& replica, double now_s) {
  if (next_ == progress_->size() || next_arrival_s() != kNever) return;
  (*progress_)[next_].request.arrival_s = now_s;
  const bool is_separate = decoding_.size() < replicas_.size();
  Replica& next = is_separate ? idlest(first_) : replica;
  next.add(next_++, now_s);
  if (is_separate) start(next, now_s);
}

}  // namespace headroom::detail
