#include "step_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace headroom::detail {
namespace {

/// Attention of a chunk is quadratic in its tokens: between multiples of 32 a line is off by at
/// most 32²/8 = 128 of its n·(past + n/2) products.
constexpr std::int64_t kChunkStep = 32;
constexpr std::int64_t kChunkPastStep = 64;

/// `value` between the multiples of `step` around it: the lower one, and the way to the next.
struct Place {
  std::int64_t below;
  double fraction;
};

Place place_of(std::int64_t value, std::int64_t step) {
  return {value / step * step, static_cast<double>(value % step) / static_cast<double>(step)};
}

BoundSeconds between(const BoundSeconds& low, const BoundSeconds& high, double fraction) {
  return (1 - fraction) * low + fraction * high;
}

}  // namespace

SampledFunction::SampledFunction(std::int64_t step,
                                 std::function<BoundSeconds(std::int64_t)> function)
    : step_(step), function_(std::move(function)) {}

BoundSeconds SampledFunction::computed(std::size_t index) {
  if (index >= values_.size()) {
    values_.resize(index + 1 + index / 2, {std::numeric_limits<double>::quiet_NaN(), 0, 0});
  }
  BoundSeconds& value = values_[index];
  if (std::isnan(value.all)) value = function_(static_cast<std::int64_t>(index) * step_.value());
  return value;
}

BoundSeconds SampledFunction::operator()(std::int64_t count) {
  const std::int64_t below = step_.quotient(count);
  const auto index = static_cast<std::size_t>(below);
  const std::int64_t rest = count - below * step_.value();
  const BoundSeconds low = at(index);
  if (rest == 0) return low;
  return between(low, at(index + 1),
                 static_cast<double>(rest) / static_cast<double>(step_.value()));
}

FunctionPiece SampledFunction::piece(std::int64_t first, std::int64_t count) {
  const std::int64_t below = step_.quotient(first);
  const auto index = static_cast<std::size_t>(below);
  const std::int64_t rest = first - below * step_.value();
  const double part = 1 / static_cast<double>(step_.value());
  FunctionPiece piece;
  piece.steps = step_.value() - rest;
  piece.first = at(index);
  if (count == 1 && rest == 0) return piece;
  const BoundSeconds low = piece.first;
  const BoundSeconds high = at(index + 1);
  piece.first = between(low, high, static_cast<double>(rest) * part);
  piece.growth = part * (high - low);
  if (piece.steps < count) piece.next_growth = part * (at(index + 2) - high);
  return piece;
}

StepTimes::StepTimes(Planner& planner, const PlanChoice& choice)
    : planner_(&planner),
      choice_(choice),
      head_(
          kTokenStep,
          [this](std::int64_t sampled) { return planner_->decode_time(choice_, sampled, 0).head; }),
      decode_(kPastStep, [this](std::int64_t past_len) {
        return planner_->decode_time(choice_, 1, past_len).sequences;
      }) {}

BoundSeconds StepTimes::weights(std::int64_t tokens, std::int64_t sequences) {
  const std::int64_t adapters = std::min(sequences, planner_->query().adapter.held);
  auto found = weights_.find(adapters);
  if (found == weights_.end()) {
    const auto seconds = [this, adapters](std::int64_t count) {
      if (count == 0) return BoundSeconds{};
      return planner_->prefill_time(choice_, count, 0, adapters).over_tokens();
    };
    found = weights_.emplace(adapters, SampledFunction(kTokenStep, seconds)).first;
  }
  return found->second(tokens);
}

double StepTimes::share_beside(std::int64_t sequences) {
  constexpr std::int64_t kAnyLength = 4096;
  const auto [found, is_new] = shares_.try_emplace(sequences);
  if (is_new) {
    const auto seconds = [&](std::int64_t count) {
      return planner_->decode_time(choice_, count, kAnyLength).sequences.all;
    };
    found->second = seconds(sequences) / (static_cast<double>(sequences) * seconds(1));
  }
  return found->second;
}

BoundSeconds StepTimes::chunk_at(std::int64_t tokens, std::int64_t past_len) {
  if (tokens == 0) return {};
  const auto key = static_cast<std::uint64_t>(tokens) << 40U | static_cast<std::uint64_t>(past_len);
  const auto [found, is_new] = chunks_.try_emplace(key);
  if (is_new) found->second = planner_->prefill_time(choice_, tokens, past_len).sequences;
  return found->second;
}

BoundSeconds StepTimes::chunk(std::int64_t tokens, std::int64_t past_len) {
  const Place length = place_of(tokens, kChunkStep);
  const Place past = place_of(past_len, kChunkPastStep);
  const auto of_length = [&](std::int64_t count) {
    const BoundSeconds low = chunk_at(count, past.below);
    if (past.fraction == 0) return low;
    return between(low, chunk_at(count, past.below + kChunkPastStep), past.fraction);
  };
  const BoundSeconds low = of_length(length.below);
  if (length.fraction == 0) return low;
  return between(low, of_length(length.below + kChunkStep), length.fraction);
}

}  // namespace headroom::detail
