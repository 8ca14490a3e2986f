// Questions that no legal plan answers: the rule that excludes all plans, or those that exclude
// some.
#include <algorithm>
#include <string>

#include "headroom/plan_report.h"
#include "support/data.h"

namespace headroom::test {
namespace {

PlanQuestion question_of(const char* model, Purpose purpose, std::int64_t devices,
                         std::int64_t batch) {
  PlanQuestion question;
  question.model = load_model(model);
  question.query.purpose = purpose;
  question.query.attention = AttentionImplementation::fused;
  question.rates = device_rates(find_machine("h100-80gb"), purpose, DType::bfloat16);
  question.devices = devices;
  question.load = {batch, 1024};
  return question;
}

/// The rules that the refusal names.
std::vector<PlanRule> named_rules(const PlanQuestion& question, const FixedDegrees& fixed) {
  SearchSpace space;
  space.fixed = fixed;
  space.threads = 1;
  std::vector<PlanRule> rules;
  try {
    (void)make_plan_report(question, space);
  } catch (const NoLegalPlan& error) {
    for (const PlanViolation& violation : error.violations()) {
      rules.push_back(violation.rule);
      const std::string requirement(requirement_of(violation.rule));
      CHECK(error.message().find(requirement) != std::string::npos);
    }
  }
  return rules;
}

using Rules = std::vector<PlanRule>;

}  // namespace

TEST_CASE("a rule that every plan breaks is named alone") {
  FixedDegrees tensor;
  tensor.tensor = 64;
  CHECK(named_rules(question_of("llama-3-8b", Purpose::serve, 64, 64), tensor) ==
        Rules{PlanRule::tensor_heads});
  FixedDegrees replicas;
  replicas.data = 16;
  CHECK(named_rules(question_of("gpt2", Purpose::train, 16, 15), replicas) ==
        Rules{PlanRule::busy_replicas});
  FixedDegrees experts;
  experts.expert = 2;
  CHECK(named_rules(question_of("gpt2", Purpose::train, 8, 8), experts) ==
        Rules{PlanRule::expert_routed});
  FixedDegrees whole;
  whole.expert_tensor = ExpertTensor::whole;
  CHECK(named_rules(question_of("gpt2", Purpose::serve, 4, 4), whole) ==
        Rules{PlanRule::whole_experts});
  // Heads, too, exclude degrees that are open: the given one decides.
  FixedDegrees chunks;
  chunks.pipeline = 4;
  chunks.interleave = 2;
  chunks.micro_batch = 1;
  CHECK(named_rules(question_of("gpt2", Purpose::train, 4, 6), chunks) ==
        Rules{PlanRule::interleave_micro_batches});
}

// A loss in chunks may take all sequences at once or one after the other, and sequence parallelism
// is a choice.
TEST_CASE("a rule is named alone only if every micro-batch breaks it, with and without sp") {
  FixedDegrees groups;
  groups.pipeline = 2;
  groups.data = 4;
  groups.step = {.schedule = PipelineSchedule::dual_pipe, .zero_ranks = 3, .loss_chunks = 2};
  CHECK(named_rules(question_of("llama-3-8b", Purpose::train, 8, 64), groups) ==
        Rules{PlanRule::zero_ranks_divide});
  FixedDegrees overlapped;
  overlapped.tensor = 2;
  overlapped.data = 4;
  overlapped.step.tensor_overlap = TensorOverlap::on;
  PlanQuestion odd = question_of("llama-3-8b", Purpose::train, 8, 2);
  odd.load.seq_len = 1001;
  CHECK(named_rules(odd, overlapped) == Rules{PlanRule::busy_replicas});
  odd.load.batch_size = 8;
  CHECK(named_rules(odd, overlapped).empty());
}

TEST_CASE("context parallelism of a served model is refused as such") {
  FixedDegrees fixed;
  fixed.context = 2;
  CHECK(named_rules(question_of("llama-3-8b", Purpose::serve, 2, 8), fixed) ==
        Rules{PlanRule::context_trains});
}

TEST_CASE("degrees and micro-batches below 1 break rules of a search, too") {
  for (const auto degree : {&FixedDegrees::tensor, &FixedDegrees::pipeline, &FixedDegrees::data,
                            &FixedDegrees::context, &FixedDegrees::expert}) {
    FixedDegrees fixed;
    fixed.*degree = 0;
    CHECK(named_rules(question_of("gpt2", Purpose::train, 4, 8), fixed) ==
          Rules{PlanRule::degrees_positive});
  }
  FixedDegrees fixed;
  fixed.micro_batch = 0;
  CHECK(named_rules(question_of("gpt2", Purpose::train, 4, 8), fixed) ==
        Rules{PlanRule::micro_batch_positive});
}

// Three replicas of nine sequences: a micro-batch of three is no power of two.
TEST_CASE("a search tries micro-batches of all sequences of a replica") {
  FixedDegrees fixed;
  fixed.pipeline = 2;
  fixed.data = 3;
  fixed.step.loss_chunks = 3 * 1024;
  CHECK(named_rules(question_of("llama-3-8b", Purpose::train, 6, 9), fixed).empty());
}

TEST_CASE("rules that exclude some plans each are named together") {
  CHECK(named_rules(question_of("gpt2", Purpose::serve, 1048573, 1), {}) ==
        Rules{PlanRule::busy_replicas, PlanRule::pipeline_layers, PlanRule::tensor_heads});
}

TEST_CASE("degrees that do not make the devices are named with their product") {
  FixedDegrees fixed;
  fixed.tensor = 3;
  const PlanQuestion question = question_of("gpt2", Purpose::serve, 8, 8);
  SearchSpace space;
  space.fixed = fixed;
  CHECK_THROWS_WITH_AS((void)make_plan_report(question, space),
                       "8 devices cannot be divided into groups of 3 (tp 3)", Error);
  space.fixed.tensor = 2;
  space.fixed.pipeline = 1;
  space.fixed.data = 2;
  CHECK_THROWS_WITH_AS((void)make_plan_report(question, space), "tp 2 · dp 2 is 4 devices, not 8",
                       Error);
}

TEST_CASE("context parallelism is refused for the state of a hybrid, whatever its attention") {
  const ModelSpec hybrid = load_model("zamba2-7b").spec;
  ParallelPlan plan;
  plan.context = 2;
  for (const auto attention : {AttentionImplementation::eager, AttentionImplementation::fused}) {
    const ShardingLimits limits = limits_of(build_graph(hybrid, {Phase::train, attention}), 1024);
    CHECK(broken_rule(plan, limits) == PlanRule::context_without_state);
  }
}

}  // namespace headroom::test
