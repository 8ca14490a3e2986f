// Properties of plans for every kind of model: grouped heads, alternating layers, routed experts,
// latent attention, a recurrence, an encoder with a decoder.
#include "gpt_models.h"
#include "headroom/plan.h"

namespace headroom::test {
namespace {

constexpr const char* kPlannedModels[] = {
    "gpt2-xl",      "llama-3-8b",       "gemma-2-2b",         "gemma-3-4b",         "gpt-oss-20b",
    "mixtral-8x7b", "deepseek-v2-lite", "llama-4-scout-text", "qwen3-next-80b-a3b", "t5-3b"};

Planner planner_for(const char* model, Purpose purpose) {
  PlanQuery query;
  query.purpose = purpose;
  return {load_model(model).spec, query,
          device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16)};
}

/// Each kind of parallelism alone, and some together.
std::vector<ParallelPlan> some_plans() {
  std::vector<ParallelPlan> plans;
  const auto add = [&](std::int64_t tensor, SequenceParallel sequence, std::int64_t pipeline,
                       std::int64_t data, std::int64_t context, std::int64_t expert) {
    ParallelPlan plan;
    plan.tensor = tensor;
    plan.sequence = sequence;
    plan.pipeline = pipeline;
    plan.data = data;
    plan.context = context;
    plan.expert = expert;
    plans.push_back(plan);
  };
  add(1, SequenceParallel::off, 1, 1, 1, 1);
  add(2, SequenceParallel::off, 1, 1, 1, 1);
  add(2, SequenceParallel::on, 1, 1, 1, 1);
  add(1, SequenceParallel::off, 3, 1, 1, 1);
  add(1, SequenceParallel::off, 1, 4, 1, 1);
  add(1, SequenceParallel::off, 1, 1, 2, 1);
  add(1, SequenceParallel::off, 1, 4, 1, 2);
  add(2, SequenceParallel::on, 2, 4, 1, 2);
  return plans;
}

constexpr std::int64_t ParallelPlan::*kDegrees[] = {&ParallelPlan::tensor, &ParallelPlan::pipeline,
                                                    &ParallelPlan::data, &ParallelPlan::context};

}  // namespace

TEST_CASE("twice the devices of any kind never need more memory each") {
  const Load load{64, 2048};
  for (const char* const name : kPlannedModels) {
    CAPTURE(std::string(name));
    Planner planner = planner_for(name, Purpose::train);
    const ShardingLimits limits = planner.limits(load.seq_len);
    for (const ParallelPlan& plan : some_plans()) {
      PlanChoice few;
      few.parallel = plan;
      if (broken_rule(few, load, limits)) continue;
      CAPTURE(describe(plan));
      const Integer before = planner.evaluate(few, load).memory.allocated();
      for (std::int64_t ParallelPlan::*const degree : kDegrees) {
        PlanChoice many = few;
        many.parallel.*degree *= 2;
        if (broken_rule(many, load, limits)) continue;
        CAPTURE(describe(many.parallel));
        CHECK(planner.evaluate(many, load).memory.allocated() <= before);
      }
    }
  }
}

TEST_CASE("ranks of all kinds of parallelism together store the model's parameters") {
  for (const char* const name : {"mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b"}) {
    CAPTURE(std::string(name));
    const Graph whole = training_graph(load_model(name).spec, AttentionImplementation::fused);
    ParallelPlan plan;
    plan.tensor = 2;
    plan.pipeline = 5;
    plan.data = 4;
    plan.expert = 4;
    Integer parameters = 0;
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
      const Graph rank = shard_stage(whole, plan, stage);
      for (const Weight& weight : rank.weights) {
        if (weight.kind == WeightKind::buffer) continue;
        const Part part = weight.component.part;
        const bool routed = part == Part::mlp_experts_up || part == Part::mlp_experts_down;
        const Integer stored = (weight.repeat * weight.elements()).evaluate(rank.sizes);
        parameters += stored * (is_divided(weight) ? plan.tensor : 1) * (routed ? plan.expert : 1);
      }
    }
    CHECK(parameters == count_parameters(whole).total.evaluate(whole.sizes));
  }
}

TEST_CASE("a larger micro-batch or length never needs less memory") {
  for (const char* const name : kPlannedModels) {
    CAPTURE(std::string(name));
    Planner planner = planner_for(name, Purpose::train);
    for (const ParallelPlan& plan : some_plans()) {
      PlanChoice choice;
      choice.parallel = plan;
      const auto total = [&](std::int64_t micro_batch, std::int64_t seq_len) {
        choice.micro_batch = micro_batch;
        const Load load{64, seq_len};
        if (broken_rule(choice, load, planner.limits(seq_len))) return Integer{-1};
        return planner.evaluate(choice, load).memory.total();
      };
      CAPTURE(describe(plan));
      CHECK(total(2, 1024) >= total(1, 1024));
      CHECK(total(1, 2048) >= total(1, 1024));
      CHECK(total(1, 8192) >= total(1, 4096));
    }
  }
}

TEST_CASE("serving a larger batch or context never needs less memory") {
  for (const char* const name : kPlannedModels) {
    CAPTURE(std::string(name));
    Planner planner = planner_for(name, Purpose::serve);
    const auto total = [&](std::int64_t batch, std::int64_t seq_len) {
      return planner.evaluate({}, {batch, seq_len}).memory.total();
    };
    for (const std::int64_t length : {1, 100, 500, 4000, 5000, 20000}) {
      CHECK(total(8, length) >= total(7, length));
      CHECK(total(8, length + 1) >= total(8, length));
    }
  }
}

}  // namespace headroom::test
