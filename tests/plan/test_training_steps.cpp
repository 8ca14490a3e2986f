// Steps of training plans: schedules, groups of replicas, batches that do not fill them, and an
// optimizer on the host.
#include <functional>

#include "gpt_models.h"
#include "headroom/plan_report.h"

namespace headroom::test {
namespace {

PlanFigures step_of_llama(const std::function<void(PlanChoice&)>& change) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  Planner planner(load_model("llama-3-8b").spec, query,
                  device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
  PlanChoice choice;
  change(choice);
  const Load load{64, 4096};
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.evaluate(choice, load);
}

}  // namespace

// arXiv 2401.10241, Table 1: with equal forward, input and weight passes ZB-H1 leaves a third of
// the bubble; arXiv 2412.19437, Table 2: DualPipe (p/2 − 1)·(F&B + B − 3W) and p + 1 micro-batches.
TEST_CASE("schedules without bubbles wait as their papers say") {
  const auto piped = [](PipelineSchedule schedule) {
    return step_of_llama([&](PlanChoice& choice) {
      choice.parallel.pipeline = 8;
      choice.step.schedule = schedule;
    });
  };
  const PlanFigures plain = piped(PipelineSchedule::one_forward_one_backward);
  const PlanFigures zero = piped(PipelineSchedule::zero_bubble);
  const PlanFigures dual = piped(PipelineSchedule::dual_pipe);
  CHECK(zero.time.bubble_s / plain.time.bubble_s == doctest::Approx(1.0 / 3).epsilon(0.1));
  CHECK(dual.time.bubble_s / plain.time.bubble_s == doctest::Approx(3.0 / 7 * 2 / 3).epsilon(0.1));
  CHECK(zero.memory.total() == plain.memory.total());
  // The first stage of 1F1B saves 8 micro-batches, every rank of DualPipe 9.
  CHECK(8 * dual.memory.activations ==
        doctest::Approx(9.0 * static_cast<double>(plain.memory.activations)).epsilon(0.001));
}

TEST_CASE("HSDP shards over some replicas and reduces over the others") {
  const auto sharded = [](std::int64_t replicas, std::int64_t ranks) {
    return step_of_llama([&](PlanChoice& choice) {
      choice.parallel.data = replicas;
      choice.zero = Zero::weights;
      choice.step.zero_ranks = ranks;
    });
  };
  const PlanMemory all = sharded(8, 0).memory;
  const PlanMemory eight_of_32 = sharded(32, 8).memory;
  CHECK(eight_of_32.weights == all.weights);
  CHECK(eight_of_32.optimizer == all.optimizer);
  CHECK(sharded(32, 0).memory.weights < all.weights);
  CHECK_THROWS_AS(sharded(32, 5), IllegalPlan);
}

// Mixtral 8x7B: 32 layers of 8 experts of 3 matrices of 4,096 × 14,336, and the rest of its
// 46,702,792,704 parameters. With --ep 4 of 8 replicas each expert has two copies, one in each
// group of four: groups shard the rest alone. 12 bytes each: float32 weights and two moments of
// Adam.
TEST_CASE("groups of replicas that hold each expert once do not shard its states") {
  const Integer experts = Integer{32} * 8 * 3 * 4096 * 14'336;
  const Integer rest = Integer{46'702'792'704} - experts;
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  Planner planner(load_model("mixtral-8x7b").spec, query,
                  device_rates(find_machine("b300"), query.purpose, query.dtype));
  const auto optimizer = [&](std::int64_t ranks) {
    PlanChoice choice;
    choice.parallel.data = 8;
    choice.parallel.expert = 4;
    choice.zero = Zero::optimizer;
    choice.step.zero_ranks = ranks;
    const Load load{8, 1024};
    require_legal(choice, load, planner.limits(load.seq_len));
    return static_cast<double>(planner.evaluate(choice, load).memory.optimizer);
  };
  CHECK(optimizer(0) == doctest::Approx(static_cast<double>(12 * (rest / 8 + experts / 8))));
  CHECK(optimizer(4) == doctest::Approx(static_cast<double>(12 * (rest / 4 + experts / 4))));
  CHECK_THROWS_AS(optimizer(2), IllegalPlan);
}

// Llama 3 8B: 8,030,261,248 parameters, of which 2 · 128,256 · 4,096 in embedding and head and
// 4,096 in the last norm. A rank of four stages holds two of them, those of the ends both tables;
// two replicas and the pair of stages make four holders of what is Adam's.
TEST_CASE(
    "the ends of DualPipe's pipeline hold the embedding and the head, in weights and gradients") {
  const Integer tables = Integer{2} * 128'256 * 4096 + 4096;
  const Integer held = (Integer{8'030'261'248} - tables) / 2 + tables;
  const auto states = [](PipelineSchedule schedule) {
    return step_of_llama([&](PlanChoice& choice) {
             choice.parallel.pipeline = 4;
             choice.parallel.data = 2;
             choice.zero = Zero::optimizer;
             choice.micro_batch = 1;
             choice.step.schedule = schedule;
           })
        .memory;
  };
  const PlanMemory memory = states(PipelineSchedule::dual_pipe);
  const Integer all =
      memory.weights + memory.gradients + memory.optimizer + memory.embedding_states;
  CHECK(static_cast<double>(all) == doctest::Approx(static_cast<double>(6 * held + 12 * held / 4)));
}

TEST_CASE("a batch that leaves replicas idle is less work in the same time") {
  const auto eight = [](std::int64_t batch) {
    PlanQuery query;
    query.purpose = Purpose::train;
    Planner planner(load_model("gpt2").spec, query,
                    device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
    PlanChoice choice;
    choice.parallel.data = 8;
    return planner.evaluate(choice, {batch, 1024}).time;
  };
  const PlanTime all = eight(8);
  const PlanTime one = eight(1);
  CHECK(one.iteration_s == doctest::Approx(all.iteration_s));
  CHECK(8 * one.tokens_per_s == doctest::Approx(all.tokens_per_s));
  CHECK(8 * one.mfu.value() == doctest::Approx(all.mfu.value()));
}

TEST_CASE("a micro-batch has at most the sequences of a replica, and the largest batch is legal") {
  const auto plan = [](std::int64_t micro_batch, std::int64_t pipeline) {
    PlanRequest request;
    request.micro_batch = micro_batch;
    request.choice.parallel.pipeline = pipeline;
    return request;
  };
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  Planner planner(load_model("llama-3-8b").spec, query,
                  device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
  const Load load{8, 1024};
  const ShardingLimits limits = planner.limits(load.seq_len);
  CHECK(broken_rule(resolve(plan(16, 1), load), load, limits) == PlanRule::micro_batch_replica);
  CHECK_FALSE(broken_rule(resolve(plan(8, 1), load), load, limits));
  PlanRequest dual = plan(1, 4);
  dual.choice.step.schedule = PipelineSchedule::dual_pipe;
  const std::int64_t largest = largest_batch(planner, dual, load).value_or(0);
  const Load most{largest, load.seq_len};
  CHECK((largest == 0 || !broken_rule(resolve(dual, most), most, limits)));
}

TEST_CASE("an optimizer on the host leaves its memory and takes the link's time") {
  const auto with = [](Offload offload) {
    return step_of_llama([&](PlanChoice& choice) { choice.step.offload = offload; });
  };
  const PlanFigures device = with(Offload::none);
  const PlanFigures host = with(Offload::optimizer);
  CHECK(host.memory.optimizer == 0);
  CHECK(device.memory.total() - host.memory.total() == device.memory.optimizer);
  CHECK(host.time.optimizer_s > device.time.optimizer_s);
}

}  // namespace headroom::test
