// The range of what `headroom serve` answers: the same requests with faster and slower steps.
#include <doctest/doctest.h>

#include "serve_questions.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ServedPlan answer(const ServeTraffic& traffic) {
  return make_serve_report(question_for("llama-3-8b", "h100-80gb", traffic),
                           PlanRequest{degrees(1), std::nullopt})
      .plans.front();
}

}  // namespace

// One user waits for nobody, so that all times grow as the steps do.
TEST_CASE("steps as fast and as slow as in nine of ten runs bound latencies and rates") {
  const ServedPlan plan = answer(users(1, 20, 1000, 50));
  const double factor = 1 + plan.time_range;
  REQUIRE(factor > 1.1);
  REQUIRE(plan.fastest.has_value());
  REQUIRE(plan.slowest.has_value());
  CHECK(plan.fastest->ttft.p50 < plan.figures.ttft.p50);
  CHECK(plan.slowest->ttft.p50 == doctest::Approx(plan.figures.ttft.p50 * factor));
  CHECK(plan.slowest->tpot->p99 == doctest::Approx(plan.figures.tpot->p99 * factor));
  CHECK(plan.fastest->output_tokens_per_s > plan.figures.output_tokens_per_s);
}

// All but the table of embeddings is read, and multiplied, for every token: 8,030,261,248 −
// 128,256 · 4,096 weights. H100: 989.4 TFLOP/s and 3.35 TB/s by its datasheet.
TEST_CASE("no step is faster than the datasheet allows, whatever the range") {
  const ServedPlan plan = answer(users(1, 20, 1000, 50));
  constexpr double kWeights = 8'030'261'248.0 - 128'256.0 * 4'096;
  const double step_s = 2 * kWeights / 3.35e12;
  CHECK(plan.figures.tpot->p50 / (1 + plan.time_range) < step_s);
  CHECK(plan.fastest->tpot->p50 > step_s);
  CHECK(plan.fastest->tpot->p50 < 1.1 * step_s);  // and the cache of 1,000 tokens
  const double head = 128'256.0 * 4'096;          // of the last token alone
  CHECK(plan.fastest->ttft.p50 > 2 * (kWeights - head) * 1000 / 989.5e12);
}

TEST_CASE("slower steps lengthen the queue, too") {
  const ServedPlan plan = answer(poisson(8, 400, 2000, 200));
  const double factor = 1 + plan.time_range;
  CHECK(plan.slowest->ttft.p90 > factor * plan.figures.ttft.p90);
  CHECK(plan.fastest->ttft.p90 < plan.figures.ttft.p90);
  CHECK(plan.slowest->load.mean_running > plan.figures.load.mean_running);
}

// One user waits for nobody: a step's factor is that of every latency and of the throughput.
TEST_CASE("machines are compared with the range of their latencies and throughput") {
  std::vector<ServeQuestion> questions;
  for (const char* const machine : {"l40s", "h100-80gb"}) {
    questions.push_back(question_for("llama-3-8b", machine, users(1, 20, 1000, 50)));
    questions.back().targets.ttft_s = 10;
  }
  const ServeMachinesReport report = make_serve_machines_report(questions, FixedDegrees{}, {1, 1});
  REQUIRE(report.machines.size() == 2);
  for (const ServeReport& one : report.machines) {
    const ServedPlan& plan = one.plans.front();
    const double factor = 1 + plan.time_range;
    REQUIRE(factor > 1.1);
    REQUIRE(plan.fastest.has_value());
    REQUIRE(plan.slowest.has_value());
    CHECK(plan.fastest->ttft.p50 < plan.figures.ttft.p50);
    CHECK(plan.slowest->tpot->p50 == doctest::Approx(plan.figures.tpot->p50 * factor));
    CHECK(plan.slowest->output_tokens_per_s ==
          doctest::Approx(plan.figures.output_tokens_per_s / factor));
  }
}
