// Published throughput of training runs: arXiv 2104.04473, Table 1.
#include <algorithm>
#include <cmath>

#include "gpt_models.h"
#include "headroom/plan.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kSeqLen = 2048;
constexpr std::int64_t kVocab = 51200;

/// FLOPs of an iteration with full recomputation: section 3.3.1, equation 3.
double flops_of_iteration(const nlohmann::json& model) {
  const double layers = model["layers"];
  const double hidden = model["hidden"];
  const double tokens = model["batch"].get<double>() * kSeqLen;
  return 96 * tokens * layers * hidden * hidden *
         (1 + kSeqLen / (6 * hidden) + kVocab / (16 * layers * hidden));
}

/// Teraflops per GPU of the published degrees with the best micro-batch and number of model chunks,
/// which the paper does not give ("the interleaved pipeline schedule with the scatter/gather
/// optimization").
double best_teraflops(const nlohmann::json& model) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::eager;
  Planner planner(gpt(model["hidden"], model["heads"], model["layers"]), query,
                  device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16));
  const Load load{model["batch"], kSeqLen};
  const ShardingLimits limits = planner.limits(kSeqLen);
  PlanChoice choice;
  choice.parallel.tensor = model["tp"];
  choice.parallel.pipeline = model["pp"];
  choice.parallel.data =
      model["gpus"].get<std::int64_t>() / (choice.parallel.tensor * choice.parallel.pipeline);
  choice.recompute.kind = Recompute::full;
  double fastest = 1e300;
  for (const std::int64_t micro_batch : {1, 2, 4, 8, 16}) {
    for (std::int64_t chunks = 1; chunks <= limits.layers.main; ++chunks) {
      choice.micro_batch = micro_batch;
      choice.parallel.interleave = chunks;
      if (limits.layers.main % (choice.parallel.pipeline * chunks) != 0) continue;
      if (broken_rule(choice, load, limits)) continue;
      const PlanFigures figures = planner.evaluate(choice, load);
      if (planner.fits(figures)) fastest = std::min(fastest, figures.time.iteration_s);
    }
  }
  return flops_of_iteration(model) / fastest / model["gpus"].get<double>() / 1e12;
}

}  // namespace

TEST_CASE("models of Narayanan et al., Table 1, have the published parameters") {
  const nlohmann::json table = read_json(data_folder() / "training/narayanan.json");
  for (const auto& model : table["models"]) {
    const Graph graph = training_graph(gpt(model["hidden"], model["heads"], model["layers"]));
    const Integer parameters = count_parameters(graph).total.evaluate(graph.sizes);
    const double published = model["parameters_billion"];
    CHECK(std::abs(static_cast<double>(parameters) / 1e9 - published) < 0.06);
  }
}

// Ampere's efficiencies were fitted to these rows and those of arXiv 2205.05198, Table 5. The paper
// cuts its models into chunks of equally many layers.
TEST_CASE("throughput of GPT models from 1.7 to 1008 billion parameters is within 7 % of Table 1") {
  const nlohmann::json table = read_json(data_folder() / "training/narayanan.json");
  for (const auto& model : table["models"]) {
    CAPTURE(model["parameters_billion"].get<double>());
    CHECK(best_teraflops(model) ==
          doctest::Approx(model["teraflops_per_gpu"].get<double>()).epsilon(0.07));
  }
}

}  // namespace headroom::test
