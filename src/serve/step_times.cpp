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

double between(double low, double high, double fraction) { return low + fraction * (high - low); }

}  // namespace

SampledFunction::SampledFunction(std::int64_t step, std::function<double(std::int64_t)> function)
    : step_(step), function_(std::move(function)) {}

double SampledFunction::at(std::size_t index) {
  if (index >= values_.size()) {
    values_.resize(index + 1 + index / 2, std::numeric_limits<double>::quiet_NaN());
  }
  double& value = values_[index];
  if (std::isnan(value)) value = function_(static_cast<std::int64_t>(index) * step_);
  return value;
}

double SampledFunction::operator()(std::int64_t count) {
  const Place place = place_of(count, step_);
  const auto index = static_cast<std::size_t>(place.below / step_);
  if (place.fraction == 0) return at(index);
  const double low = at(index);
  return between(low, at(index + 1), place.fraction);
}

StepTimes::StepTimes(Planner& planner, const PlanChoice& choice)
    : planner_(&planner),
      choice_(choice),
      head_(kTokenStep,
            [this](std::int64_t sampled) {
              return planner_->decode_time(choice_, sampled, 0).head_s;
            }),
      decode_(kPastStep, [this](std::int64_t past_len) {
        return planner_->decode_time(choice_, 1, past_len).sequences_s;
      }) {}

double StepTimes::weights(std::int64_t tokens, std::int64_t sequences) {
  const std::int64_t adapters = std::min(sequences, planner_->query().adapter.held);
  auto found = weights_.find(adapters);
  if (found == weights_.end()) {
    const auto seconds = [this, adapters](std::int64_t count) {
      if (count == 0) return 0.0;
      const PassTime time = planner_->prefill_time(choice_, count, 0, adapters);
      return time.weights_s + time.communication_s;
    };
    found = weights_.emplace(adapters, SampledFunction(kTokenStep, seconds)).first;
  }
  return found->second(tokens);
}

double StepTimes::chunk_at(std::int64_t tokens, std::int64_t past_len) {
  if (tokens == 0) return 0;
  const auto key = static_cast<std::uint64_t>(tokens) << 40U | static_cast<std::uint64_t>(past_len);
  const auto [found, is_new] = chunks_.try_emplace(key, 0);
  if (is_new) found->second = planner_->prefill_time(choice_, tokens, past_len).sequences_s;
  return found->second;
}

double StepTimes::chunk(std::int64_t tokens, std::int64_t past_len) {
  const Place length = place_of(tokens, kChunkStep);
  const Place past = place_of(past_len, kChunkPastStep);
  const auto of_length = [&](std::int64_t count) {
    const double low = chunk_at(count, past.below);
    if (past.fraction == 0) return low;
    return between(low, chunk_at(count, past.below + kChunkPastStep), past.fraction);
  };
  const double low = of_length(length.below);
  if (length.fraction == 0) return low;
  return between(low, of_length(length.below + kChunkStep), length.fraction);
}

}  // namespace headroom::detail
