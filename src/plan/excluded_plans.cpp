#include "excluded_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "broken_rules.h"
#include "degree_choices.h"
#include "setting_format.h"
#include "with_noun.h"

namespace headroom {
namespace {

/// Longer lists of rules would hide the first ones.
constexpr std::size_t kMostRulesNamed = 3;

using VisitPlan = std::function<void(const PlanChoice&)>;

/// Micro-batches that leave no replica without sequences; the smallest if there is none.
std::vector<std::int64_t> micro_batches(const SearchSpace& space, const ShardingLimits& limits,
                                        std::int64_t replicas) {
  if (!limits.training) return {1};
  std::vector<std::int64_t> sizes = detail::choices(
      space.fixed.micro_batch, detail::micro_batch_sizes(space.load.batch_size, space.devices));
  const std::int64_t most = std::max(space.load.batch_size / replicas, sizes.front());
  std::erase_if(sizes, [&](std::int64_t size) { return size > most; });
  return sizes;
}

/// Calls `visit` with the plans of the degrees of `choice` that a search tries.
void for_each_step(const SearchSpace& space, const ShardingLimits& limits, PlanChoice choice,
                   const VisitPlan& visit) {
  const FixedDegrees& fixed = space.fixed;
  choice.parallel.interleave = fixed.interleave.value_or(1);
  const auto both = {SequenceParallel::off, SequenceParallel::on};
  for (const SequenceParallel sequence : detail::choices<SequenceParallel>(fixed.sequence, both)) {
    const bool divides_none = sequence == SequenceParallel::on && choice.parallel.tensor == 1;
    if (divides_none && !fixed.sequence) continue;
    choice.parallel.sequence = sequence;
    choice.step = fixed.step;
    if (sequence == SequenceParallel::off) choice.step.tensor_overlap = TensorOverlap::off;
    for (const std::int64_t size : micro_batches(space, limits, choice.parallel.data)) {
      choice.micro_batch = size;
      visit(choice);
    }
  }
}

/// Expert-parallel degrees that a search tries; without a wish, 1 breaks the fewest rules.
std::vector<std::int64_t> expert_degrees(const FixedDegrees& fixed, const ShardingLimits& limits) {
  const bool spreads = fixed.batch_overlap == BatchOverlap::two_batches && limits.experts > 0;
  return detail::choices(fixed.expert,
                         spreads ? detail::divisors(limits.experts) : std::vector<std::int64_t>{1});
}

/// Calls `visit` with the plans of every division of the devices, by ascending degrees.
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
    std::erase_if(all, [&](std::int64_t degree) { return degree < 1 || devices % degree != 0; });
    return all;
  };
  for (const std::int64_t tensor : degrees(fixed.tensor, space.devices)) {
    plan.tensor = tensor;
    const std::int64_t beside = space.devices / tensor;
    const bool divides_context = fixed.context || limits.training;
    const std::vector<std::int64_t> contexts =
        divides_context ? degrees(fixed.context, beside) : std::vector<std::int64_t>{1};
    for (const std::int64_t context : contexts) {
      plan.context = context;
      for (const std::int64_t pipeline : degrees(fixed.pipeline, beside / context)) {
        plan.pipeline = pipeline;
        plan.data = beside / context / pipeline;
        if (fixed.data.value_or(plan.data) != plan.data) continue;
        for (const std::int64_t expert : expert_degrees(fixed, limits)) {
          plan.expert = expert;
          for_each_step(space, limits, choice, visit);
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
    if (!common_.empty()) {
      return {*std::ranges::find(examples_, common_.front(), &PlanViolation::rule)};
    }
    std::vector<PlanViolation> named = examples_;
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

/// The rule that a number below 1 breaks, which the program's options refuse.
std::optional<PlanRule> rule_of_numbers(const FixedDegrees& fixed) {
  const std::array degrees{fixed.tensor,  fixed.pipeline, fixed.data,
                           fixed.context, fixed.expert,   fixed.interleave};
  const auto below_one = [](const std::optional<std::int64_t>& number) {
    return number.value_or(1) < 1;
  };
  if (std::ranges::any_of(degrees, below_one)) return PlanRule::degrees_positive;
  if (below_one(fixed.micro_batch)) return PlanRule::micro_batch_positive;
  return std::nullopt;
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
  const std::string question =
      fmt::format("no plan for {} is legal for {} with a batch of {}",
                  detail::with_noun(space.devices, "device"), model, space.load.batch_size);
  if (const auto rule = rule_of_numbers(space.fixed)) {
    throw NoLegalPlan(question, {{*rule, {}, space.load, limits}});
  }
  BrokenRules broken;
  bool divides = false;
  for_each_division(space, limits, [&](const PlanChoice& choice) {
    divides = true;
    broken.add({PlanRule::degrees_positive, choice, space.load, limits},
               rules_against(choice, space.load, limits));
  });
  if (!divides) throw_other_devices(space);
  throw NoLegalPlan(question, broken.named());
}

}  // namespace headroom
