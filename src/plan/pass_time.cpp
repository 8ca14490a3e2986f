// Seconds of a serving pass by what they grow with, from which a step of continuous batching is put
// together.
#include "planner.h"

namespace headroom {
namespace {

using detail::RankCosts;
using detail::Section;
using detail::SectionCosts;

BoundSeconds weight_seconds(const SectionCosts& section) {
  return {section.weights_s, section.weights_bound_s, section.weights_roofline_s};
}

BoundSeconds forward_seconds(const SectionCosts& section) {
  return {section.forward_s, section.compute_bound_s, section.roofline_s};
}

void add(const SectionCosts& section, PassTime& time) {
  time.weights += weight_seconds(section);
  time.sequences += forward_seconds(section) - weight_seconds(section);
  time.communication_s += section.forward_communication_s;
}

PassTime pass_time(const RankCosts& costs) {
  constexpr auto kHead = static_cast<std::size_t>(Section::Kind::main_last);
  PassTime time;
  for (std::size_t i = 0; i < costs.outside.size(); ++i) {
    if (i != kHead) add(costs.outside[i], time);
  }
  for (const SectionCosts& kind : costs.layers) add(kind, time);
  time.head = forward_seconds(costs.outside[kHead]);
  time.head.all += costs.outside[kHead].forward_communication_s;
  return time;
}

}  // namespace

PassTime Planner::Implementation::prefill_time(const PlanChoice& choice, std::int64_t tokens,
                                               std::int64_t past_len, std::int64_t adapters) {
  const RankCosts& pass = serving_costs(Pass::prefill, choice.parallel,
                                        workload_of(Pass::prefill, 1, tokens, past_len), adapters);
  PassTime time = pass_time(pass);
  time.communication_s += sends_seconds(choice, pass);
  return time;
}

PassTime Planner::Implementation::decode_time(const PlanChoice& choice, std::int64_t sequences,
                                              std::int64_t past_len) {
  const RankCosts& pass = serving_costs(
      Pass::decode, choice.parallel, workload_of(Pass::decode, sequences, 1, past_len), sequences);
  PassTime time = pass_time(pass);
  time.communication_s += sends_seconds(choice, pass);
  return time;
}

PassTime Planner::prefill_time(const PlanChoice& choice, std::int64_t tokens, std::int64_t past_len,
                               std::int64_t adapters) {
  return implementation_->prefill_time(choice, tokens, past_len, adapters);
}

PassTime Planner::decode_time(const PlanChoice& choice, std::int64_t sequences,
                              std::int64_t past_len) {
  return implementation_->decode_time(choice, sequences, past_len);
}

}  // namespace headroom
