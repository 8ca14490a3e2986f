#include "excluded_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "broken_rules.h"
#include "degree_choices.h"
#include "setting_format.h"
#include "with_noun.h"

namespace headroom {
namespace {

/// Longer lists of rules would hide the first ones.
constexpr std::size_t kMostRulesNamed = 3;

/// The decisions that the degrees leave open, as they break the fewest rules.
void choose_freely(const SearchSpace& space, const ShardingLimits& limits, PlanChoice& choice) {
  const FixedDegrees& fixed = space.fixed;
  ParallelPlan& plan = choice.parallel;
  const bool overlaps = fixed.step.tensor_overlap == TensorOverlap::on;
  const bool needs_sequence = overlaps || fixed.expert_tensor == ExpertTensor::whole;
  const bool sharded = needs_sequence && limits.training && plan.tensor > 1;
  plan.sequence = fixed.sequence.value_or(sharded ? SequenceParallel::on : SequenceParallel::off);
  if (plan.sequence == SequenceParallel::off) choice.step.tensor_overlap = TensorOverlap::off;
  plan.interleave = fixed.interleave.value_or(1);
  const std::int64_t sequences = std::max<std::int64_t>(1, space.load.batch_size / plan.data);
  choice.micro_batch = fixed.micro_batch.value_or(fixed.step.loss_chunks > 1 ? sequences : 1);
}

/// Expert-parallel degrees that a search tries; without a wish, 1 breaks the fewest rules.
std::vector<std::int64_t> expert_degrees(const FixedDegrees& fixed, const ShardingLimits& limits) {
  const bool spreads = fixed.batch_overlap == BatchOverlap::two_batches && limits.experts > 0;
  return detail::choices(fixed.expert,
                         spreads ? detail::divisors(limits.experts) : std::vector<std::int64_t>{1});
}

using VisitPlan = std::function<void(const PlanChoice&)>;

/// Calls `visit` with every division of the devices, by ascending degrees.
void for_each_division(const SearchSpace& space, const ShardingLimits& limits,
                       const VisitPlan& visit) {
  const FixedDegrees& fixed = space.fixed;
  PlanChoice choice;
  choice.recompute = fixed.recompute.value_or(Recomputation{});
  ParallelPlan& plan = choice.parallel;
  plan.expert_tensor = fixed.expert_tensor;
  plan.expert_exchange = fixed.expert_exchange;
  plan.batch_overlap = fixed.batch_overlap;
  const auto degrees = [](const std::optional<std::int64_t>& wish, std::int64_t devices) {
    std::vector<std::int64_t> all = detail::choices(wish, detail::divisors(devices));
    std::erase_if(all, [&](std::int64_t degree) { return devices % degree != 0; });
    return all;
  };
  for (const std::int64_t tensor : degrees(fixed.tensor, space.devices)) {
    plan.tensor = tensor;
    const std::int64_t beside = space.devices / tensor;
    for (const std::int64_t context : degrees(fixed.context, limits.training ? beside : 1)) {
      plan.context = context;
      for (const std::int64_t pipeline : degrees(fixed.pipeline, beside / context)) {
        plan.pipeline = pipeline;
        plan.data = beside / context / pipeline;
        if (fixed.data.value_or(plan.data) != plan.data) continue;
        for (const std::int64_t expert : expert_degrees(fixed, limits)) {
          plan.expert = expert;
          choice.step = fixed.step;
          choose_freely(space, limits, choice);
          visit(choice);
        }
      }
    }
  }
}

std::vector<PlanRule> rules_against(const PlanChoice& choice, const Load& load,
                                    const ShardingLimits& limits) {
  std::vector<PlanRule> rules = detail::broken_rules(choice, load, limits);
  const std::int64_t sequences = limits.training ? choice.micro_batch : 1;
  if (choice.parallel.data * sequences > load.batch_size) rules.push_back(PlanRule::busy_replicas);
  return rules;
}

/// The rules that plans break: those that all of them break, and the first plan for each rule.
class BrokenRules {
 public:
  void add(const PlanViolation& plan, const std::vector<PlanRule>& rules) {
    if (examples_.empty()) common_ = rules;
    std::erase_if(common_,
                  [&](PlanRule rule) { return std::ranges::find(rules, rule) == rules.end(); });
    for (const PlanRule rule : rules) {
      if (std::ranges::find(examples_, rule, &PlanViolation::rule) != examples_.end()) continue;
      examples_.push_back(plan);
      examples_.back().rule = rule;
    }
  }

  /// The rule that all plans break, or the first rules that some break.
  [[nodiscard]] std::vector<PlanViolation> named() const {
    std::vector<PlanViolation> named = examples_;
    if (!common_.empty()) {
      return {*std::ranges::find(examples_, common_.front(), &PlanViolation::rule)};
    }
    if (named.size() > kMostRulesNamed) {
      named.erase(named.begin() + static_cast<std::ptrdiff_t>(kMostRulesNamed), named.end());
    }
    return named;
  }

 private:
  std::vector<PlanRule> common_;
  std::vector<PlanViolation> examples_;
};

/// Throws Error{invalid_input} for degrees of which no plan has that many devices.
[[noreturn]] void throw_other_devices(const SearchSpace& space) {
  const FixedDegrees& fixed = space.fixed;
  ParallelPlan plan;
  plan.tensor = fixed.tensor.value_or(1);
  plan.pipeline = fixed.pipeline.value_or(1);
  plan.data = fixed.data.value_or(1);
  plan.context = fixed.context.value_or(1);
  const std::int64_t devices = plan.devices();
  if (space.devices % devices == 0) {
    throw_invalid_input(
        fmt::format("{} is {}, not {}", describe(plan), detail::with_noun(devices, "device"),
                    space.devices),
        fmt::format("leave out a degree, or ask for {}", detail::with_noun(devices, "device")));
  }
  throw_invalid_input(
      fmt::format("{} cannot be divided into groups of {} ({})",
                  detail::with_noun(space.devices, "device"), devices, describe(plan)),
      fmt::format("choose other degrees, or a multiple of {} devices", devices));
}

std::string requirements_of(const std::vector<PlanViolation>& violations) {
  std::string text;
  for (const PlanViolation& violation : violations) {
    text += fmt::format("{}{}", text.empty() ? ": " : "; ", requirement_of(violation.rule));
  }
  return text;
}

}  // namespace

NoLegalPlan::NoLegalPlan(std::string question, std::vector<PlanViolation> violations)
    : Error(ErrorCode::invalid_input, question + requirements_of(violations), {},
            fmt::format("choose a larger {}, other degrees, or another number of devices",
                        Setting::batch_size)),
      question_(std::move(question)),
      violations_(std::move(violations)) {}

void detail::throw_no_legal_plan(const SearchSpace& space, const ShardingLimits& limits,
                                 const std::string& model) {
  BrokenRules broken;
  bool divides = false;
  for_each_division(space, limits, [&](const PlanChoice& choice) {
    divides = true;
    broken.add({PlanRule::degrees_positive, choice, space.load, limits},
               rules_against(choice, space.load, limits));
  });
  if (!divides) throw_other_devices(space);
  throw NoLegalPlan(
      fmt::format("no plan for {} is legal for {} with a batch of {}",
                  detail::with_noun(space.devices, "device"), model, space.load.batch_size),
      broken.named());
}

}  // namespace headroom
