#include "drafting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headroom/error.h"
#include "simulation.h"
#include "visit.h"

namespace headroom {

std::string name_of(const Drafter& drafter) {
  return std::visit(
      Overloaded{[](const PredictionModule&) -> std::string { return "mtp"; },
                 [](const NgramLookup&) -> std::string { return "ngram"; },
                 [](const DraftModel& model) -> std::string { return model.spec.name; }},
      drafter);
}

namespace detail {
namespace {

BoundSeconds none(std::int64_t /*count*/) { return {}; }

std::int64_t layers_of(const Planner& planner) { return planner.spec().main_stack().num_layers; }

/// Weights of the last layer but one, which has neither embedding nor head.
Integer layer_bytes(Planner& planner, PlanChoice choice) {
  choice.parallel.pipeline = layers_of(planner);
  const std::vector<Integer> stages = planner.stage_weights(choice);
  return stages[stages.size() < 2 ? 0 : stages.size() - 2];
}

std::int64_t hidden_size(const Planner& planner) { return planner.spec().hidden_size; }

/// Values that join a token's embedding to the last hidden state: a projection of both to one
/// (arXiv 2412.19437, equation 21) and their norms. Every rank holds all of them, in the
/// activations' type (eh_proj, enorm and hnorm in vLLM's models/deepseek_mtp.py).
Integer joining_values(const Planner& planner) {
  const Integer width = hidden_size(planner);
  return 2 * width * width + 2 * width;
}

Integer joining_bytes(const Planner& planner) {
  return bytes_of(planner.query().dtype) * joining_values(planner);
}

/// One token of each of `sequences` sequences through that projection, by the device's rates.
BoundSeconds joining_seconds(const Planner& planner, std::int64_t sequences) {
  const DeviceRates& rates = planner.rates();
  const auto width = static_cast<double>(hidden_size(planner));
  const auto tokens = static_cast<double>(sequences);
  const auto type_bytes = static_cast<double>(bytes_of(planner.query().dtype));
  const double arithmetic_s = tokens * 4 * width * width / rates.flops_per_s;
  const double memory_s =
      (static_cast<double>(joining_bytes(planner)) + tokens * 3 * width * type_bytes) /
      rates.memory_bytes_per_s;
  const double reached_arithmetic_s = arithmetic_s / rates.efficiency.matrix;
  const double reached_memory_s = memory_s / rates.efficiency.memory;
  return {rates.kernel_s + std::max(reached_arithmetic_s, reached_memory_s),
          reached_arithmetic_s > reached_memory_s ? reached_arithmetic_s : 0,
          std::max(arithmetic_s, memory_s)};
}

PlanQuery draft_query(PlanQuery query) {
  query.weights.reset();
  query.arithmetic.reset();
  query.adapter = {};
  query.kv_cache = {};
  query.images = 0;
  query.audio = 0;
  return query;
}

Planner draft_planner(const DraftModel& model, const ServeQuestion& question) {
  Planner planner(model.spec, draft_query(question.plan.query), question.plan.rates);
  if (!is_decoder(planner)) {
    throw_invalid_input(
        fmt::format("{} is not a decoder, so it proposes no tokens", planner.spec().name),
        "choose a smaller model with the same tokens");
  }
  return planner;
}

/// The model's tensor parallelism, or none where the draft model's heads do not divide by it.
PlanChoice draft_choice(const Planner& planner, const PlanChoice& choice, std::int64_t longest) {
  PlanChoice draft;
  draft.parallel.tensor = choice.parallel.tensor;
  const bool legal = !broken_rule(draft, {1, longest}, planner.limits(longest));
  return legal ? draft : PlanChoice{};
}

Integer cache_bytes(Planner& planner, PlanChoice choice, std::int64_t tokens) {
  choice.parallel.data = 1;
  choice.parallel.expert = 1;
  return planner.evaluate(choice, {1, tokens}).memory.kv_cache;
}

}  // namespace

DraftCosts::Draft::Draft(const DraftModel& model, const ServeQuestion& question,
                         const PlanChoice& target, std::int64_t longest)
    : planner(draft_planner(model, question)),
      choice(draft_choice(planner, target, longest)),
      times(planner, choice) {}

DraftCosts::DraftCosts(Planner& planner, const PlanChoice& choice, const ServeQuestion& question,
                       std::int64_t longest)
    : tokens_(question.speculation->tokens),
      check_(kPastStep,
             [&planner, choice, rows = tokens_ + 1](std::int64_t past_len) {
               return planner.prefill_time(choice, rows, past_len).sequences;
             }),
      propose_(kTokenStep, none),
      propose_cache_(kPastStep, none) {
  std::visit([&](const auto& drafter) { set_costs(drafter, planner, choice, question, longest); },
             question.speculation->drafter);
}

void DraftCosts::set_costs(const PredictionModule& /*module*/, Planner& planner,
                           const PlanChoice& choice, const ServeQuestion& /*question*/,
                           std::int64_t /*longest*/) {
  const auto layers = static_cast<double>(layers_of(planner));
  propose_ = SampledFunction(kTokenStep, [&planner, choice, layers](std::int64_t sequences) {
    const PassTime step = planner.decode_time(choice, sequences, 0);
    return joining_seconds(planner, sequences) + 1 / layers * step.over_tokens() + step.head;
  });
  propose_cache_ = SampledFunction(kPastStep, [&planner, choice, layers](std::int64_t past_len) {
    return 1 / layers * planner.decode_time(choice, 1, past_len).sequences;
  });
  weight_bytes_ = layer_bytes(planner, choice) + joining_bytes(planner);
  // An engine's own rule may count the module's layer already.
  if (!planner.query().kv_cache.drafter_layers) cache_share_ = 1 / layers;
}

void DraftCosts::set_costs(const NgramLookup& /*lookup*/, Planner& /*planner*/,
                           const PlanChoice& /*choice*/, const ServeQuestion& /*question*/,
                           std::int64_t /*longest*/) {}

void DraftCosts::set_costs(const DraftModel& model, Planner& planner, const PlanChoice& choice,
                           const ServeQuestion& question, std::int64_t longest) {
  draft_ = std::make_unique<Draft>(model, question, choice, longest);
  StepTimes& times = draft_->times;
  propose_ = SampledFunction(kTokenStep, [&times](std::int64_t sequences) {
    return times.weights(sequences, sequences) + times.head(sequences);
  });
  propose_cache_ = SampledFunction(
      kPastStep, [&times](std::int64_t past_len) { return times.decode(past_len, 1); });
  weight_bytes_ = draft_->planner.stage_weights(draft_->choice).front();
  cache_share_ = static_cast<double>(cache_bytes(draft_->planner, draft_->choice, longest)) /
                 static_cast<double>(std::max<Integer>(1, cache_bytes(planner, choice, longest)));
}

std::int64_t Acceptance::of(std::int64_t proposed) {
  constexpr unsigned kDiscardedBits = 11;  // a double has 53
  std::int64_t accepted = 0;
  while (accepted < proposed) {
    const double uniform = static_cast<double>(random_() >> kDiscardedBits) * 0x1.0p-53;
    if (uniform >= probability_) break;
    ++accepted;
  }
  return accepted;
}

}  // namespace detail
}  // namespace headroom
