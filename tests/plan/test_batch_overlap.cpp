// Two batches of a pass that hide each other's exchanges, beside a simulated schedule.
#include <algorithm>
#include <random>

#include "batch_overlap.h"
#include "gpt_models.h"
#include "headroom/plan.h"

namespace headroom::test {
namespace {

using detail::OverlappedSeconds;
using detail::SectionCosts;

/// One batch's seconds in one layer.
struct LayerSeconds {
  double others = 0;
  double dispatch = 0;
  double experts = 0;
  double combine = 0;
};

SectionCosts costs_of(const LayerSeconds& layer, std::int64_t layers) {
  const auto count = static_cast<double>(layers);
  SectionCosts costs;
  costs.forward_s = count * (layer.others + layer.experts);
  costs.experts_s = count * layer.experts;
  costs.dispatch_s = count * layer.dispatch;
  costs.combine_s = count * layer.combine;
  costs.forward_communication_s = costs.dispatch_s + costs.combine_s;
  return costs;
}

/// A resource that runs its work in order.
struct Resource {
  double free_s = 0;
  double run(double ready_s, double duration_s) {
    free_s = std::max(free_s, ready_s) + duration_s;
    return free_s;
  }
};

/// The end of both batches: processors and links each take work in vLLM's order, as soon as what
/// it needs is there.
double simulated_seconds(const LayerSeconds& first, const LayerSeconds& second,
                         std::int64_t layers) {
  Resource processors;
  Resource links;
  double first_ready = 0;
  double second_ready = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const double second_others = processors.run(second_ready, second.others);
    const double first_others = processors.run(first_ready, first.others);
    const double second_sent = links.run(second_others, second.dispatch);
    const double first_sent = links.run(first_others, first.dispatch);
    const double second_experts = processors.run(second_sent, second.experts);
    const double first_experts = processors.run(first_sent, first.experts);
    second_ready = links.run(second_experts, second.combine);
    first_ready = links.run(first_experts, first.combine);
  }
  return std::max(first_ready, second_ready);
}

}  // namespace

TEST_CASE("two batches take as long as their simulated schedule") {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> seconds(0, 1);
  const auto drawn = [&] {
    return LayerSeconds{seconds(random), seconds(random), seconds(random), seconds(random)};
  };
  for (int i = 0; i < 200; ++i) {
    const std::int64_t layers = 1 + i % 7;
    const LayerSeconds first = drawn();
    const LayerSeconds second = drawn();
    const OverlappedSeconds time =
        detail::overlapped_layers(costs_of(first, layers), costs_of(second, layers), layers);
    CHECK(time.compute_s + time.exposed_s ==
          doctest::Approx(simulated_seconds(first, second, layers)));
    CHECK(time.exposed_s > -1e-12);
  }
}

namespace {

Planner deepseek_planner(const DeviceRates& rates) {
  nlohmann::json config =
      read_json(std::filesystem::path(HEADROOM_PRESETS) / "deepseek-v3.json").at("config");
  config["num_hidden_layers"] = 8;
  PlanQuery query;
  query.arithmetic = DType::float8;
  return {spec_of(config, "deepseek-v3"), query, rates};
}

DeviceRates h800() {
  return device_rates(find_machine("h800-80gb"), Purpose::serve, DType::bfloat16, DType::float8);
}

PlanChoice experts_on(std::int64_t ranks, BatchOverlap overlap) {
  PlanChoice choice;
  choice.parallel.data = ranks;
  choice.parallel.expert = ranks;
  choice.parallel.batch_overlap = overlap;
  return choice;
}

double decode_seconds(Planner& planner, std::int64_t ranks, std::int64_t sequences,
                      BatchOverlap overlap) {
  return planner.evaluate(experts_on(ranks, overlap), {ranks * sequences, 4096}).time.iteration_s;
}

}  // namespace

TEST_CASE("a single sequence and a fast network leave nothing to gain by two batches") {
  Planner planner = deepseek_planner(h800());
  CHECK(decode_seconds(planner, 16, 1, BatchOverlap::two_batches) ==
        decode_seconds(planner, 16, 1, BatchOverlap::none));

  DeviceRates fast = h800();
  fast.link.intra_node_bytes_per_s = 1e18;
  fast.link.inter_node_bytes_per_s = 1e18;
  fast.collective_latency_s = 0;
  fast.collective_step_s = 0;
  Planner other = deepseek_planner(fast);
  // Both halves read the weights of their own.
  CHECK(decode_seconds(other, 16, 64, BatchOverlap::two_batches) >
        decode_seconds(other, 16, 64, BatchOverlap::none));
}

TEST_CASE("two batches hide exchanges, but never more than all of them") {
  Planner planner = deepseek_planner(h800());
  // Smaller batches lose more by the kernels of two than they gain.
  for (const std::int64_t sequences : {256, 384, 512}) {
    const PlanTime serial =
        planner.evaluate(experts_on(64, BatchOverlap::none), {64 * sequences, 4096}).time;
    const PlanTime both =
        planner.evaluate(experts_on(64, BatchOverlap::two_batches), {64 * sequences, 4096}).time;
    CHECK(both.iteration_s < serial.iteration_s);
    CHECK(both.compute_s >= serial.compute_s);
    CHECK(both.iteration_s >= std::max(serial.compute_s, serial.communication_s));
  }
}

TEST_CASE("the table of communication lists the exchanges of both batches") {
  Planner planner = deepseek_planner(h800());
  const auto exchanges = [&](BatchOverlap overlap, std::int64_t sequences) {
    for (const Communication& row :
         planner.communication(experts_on(16, overlap), {16 * sequences, 4096})) {
      if (row.kind == CollectiveKind::all_to_all) return row;
    }
    return Communication{};
  };
  const Communication one = exchanges(BatchOverlap::none, 64);
  const Communication two = exchanges(BatchOverlap::two_batches, 64);
  CHECK(one.count == 10);  // of five layers with experts
  CHECK(two.count == 2 * one.count);
  CHECK(two.wire_bytes == doctest::Approx(one.wire_bytes));
  CHECK(two.seconds > one.seconds);
  CHECK(exchanges(BatchOverlap::two_batches, 1).count == one.count);
}

TEST_CASE("two batches overlap only under expert parallelism, and only when serving") {
  ShardingLimits limits;
  limits.experts = 8;
  limits.training = false;
  ParallelPlan plan;
  plan.batch_overlap = BatchOverlap::two_batches;
  CHECK(broken_rule(plan, limits) == PlanRule::overlap_experts);
  plan.data = 8;
  plan.expert = 8;
  CHECK(broken_rule(plan, limits) == std::nullopt);
  limits.training = true;
  CHECK(broken_rule(plan, limits) == PlanRule::overlap_serves);
}

// The schedule hides what it can at best, and experts are as full as each other: so they were in
// DeepSeek's profiles, but not under SGLang's requests.
TEST_CASE("throughputs under two batches are at most a fifth too high if experts are balanced") {
  nlohmann::json config =
      read_json(std::filesystem::path(HEADROOM_PRESETS) / "deepseek-v3.json").at("config");
  const ModelSpec spec = spec_of(config, "deepseek-v3");
  PlanQuery query;
  query.arithmetic = DType::float8;
  for (const CsvRow& row : read_csv(data_folder() / "expert_parallel" / "throughput.csv")) {
    Planner planner(spec, query,
                    device_rates(find_machine(row.at("machine")), Purpose::serve, DType::bfloat16,
                                 DType::float8));
    // 72 ranks hold 288 experts, 32 of them copies; 64 hold the model's own.
    const std::int64_t ranks = number(row, "ep") == 72 ? 64 : number(row, "ep");
    const std::int64_t tokens = number(row, "tokens");
    const std::int64_t sequences = number(row, "sequences");
    PlanChoice choice = experts_on(ranks, BatchOverlap::two_batches);
    double rate = 0;
    if (row.at("phase") == "decode") {
      rate = planner.evaluate(choice, {ranks * sequences, tokens}).time.tokens_per_s;
    } else {
      choice.parallel.expert_exchange = ExpertExchange::by_node;
      rate = static_cast<double>(ranks * tokens) /
             planner.evaluate(choice, {ranks, tokens}).time.ttft_s.value();
    }
    const double error =
        rate / static_cast<double>(ranks) / std::stod(row.at("tokens_per_s_per_device")) - 1;
    MESSAGE(row.at("source"), " ", row.at("phase"), ": ", 100 * error, " %");
    // DeepSeek's decode comes out 6 % too slow. The fixed time of GEMMs in float8 follows single
    // kernels of vLLM, SGLang and TensorRT-LLM, which DeepSeek does not use.
    CHECK(error > -0.07);
    CHECK(error < (row.at("source") == "deepseek" ? 0.2 : 0.5));
  }
}

}  // namespace headroom::test
