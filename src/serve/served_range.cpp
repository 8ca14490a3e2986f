#include "served_range.h"

#include <algorithm>
#include <cmath>

namespace headroom::detail {
namespace {

double seconds_of(const PassTime& pass) {
  return pass.weights_s + pass.head_s + pass.sequences_s + pass.communication_s;
}

std::int64_t at_least_one(double count) { return std::max<std::int64_t>(1, std::llround(count)); }

}  // namespace

double served_range(Planner& planner, const PlanChoice& choice, const ServeFigures& figures) {
  if (!(figures.requests_per_s > 0)) return planner.time_range(choice, 0);
  const double input = figures.input_tokens_per_s / figures.requests_per_s;
  const double output = figures.output_tokens_per_s / figures.requests_per_s;
  const std::int64_t running = at_least_one(figures.mean_running);
  const PassTime prompt = planner.prefill_time(choice, at_least_one(input), 0);
  const PassTime step = planner.decode_time(choice, running, std::llround(input + output / 2));
  const double steps = output / static_cast<double>(running);
  const double all = seconds_of(prompt) + steps * seconds_of(step);
  const double bound = prompt.compute_bound_s + steps * step.compute_bound_s;
  return planner.time_range(choice, bound / all);
}

}  // namespace headroom::detail
