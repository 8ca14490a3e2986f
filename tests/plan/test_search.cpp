// The search for the best plan: complete, independent of the number of threads, and never beaten by
// a neighbour.
#include <algorithm>

#include "gpt_models.h"
#include "headroom/plan_report.h"

namespace headroom::test {
namespace {

Planner trainer_with_memory(const ModelSpec& spec, double memory_gb) {
  PlanQuery query;
  query.purpose = Purpose::train;
  DeviceRates rates = device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
  rates.memory_bytes = static_cast<Integer>(memory_gb * 1e9);
  return {spec, query, rates};
}

SearchSpace space_of(std::int64_t devices, const Load& load, int threads = 1) {
  SearchSpace space;
  space.devices = devices;
  space.load = load;
  space.threads = threads;
  return space;
}

}  // namespace

TEST_CASE("the best plan is the fastest of all fitting plans, enumerated one by one") {
  Planner planner = trainer_with_memory(gpt(1024, 16, 8), 12);
  const Load load{8, 512};
  const ShardingLimits limits = planner.limits(load.seq_len);
  double fastest = 1e300;
  std::uint64_t fitting = 0;
  for (const std::int64_t tp : {1, 2, 4}) {
    for (const std::int64_t pp : {1, 2, 4}) {
      for (const std::int64_t dp : {1, 2, 4}) {
        for (const std::int64_t chunks : {1, 2, 4, 8}) {
          for (const std::int64_t micro : {1, 2, 4, 8}) {
            for (int bits = 0; bits < 8; ++bits) {
              PlanChoice choice;
              choice.parallel.tensor = tp;
              choice.parallel.pipeline = pp;
              choice.parallel.data = dp;
              choice.parallel.interleave = chunks;
              choice.parallel.sequence =
                  bits % 2 == 0 ? SequenceParallel::off : SequenceParallel::on;
              choice.zero = static_cast<Zero>(bits / 2);
              choice.micro_batch = micro;
              const bool sane =
                  tp * pp * dp == 4 && dp * micro <= 8 && (dp > 1 || choice.zero == Zero::none);
              if (!sane || broken_rule(choice, load, limits)) continue;
              const PlanFigures figures = planner.evaluate(choice, load);
              if (!planner.fits(figures)) continue;
              ++fitting;
              fastest = std::min(fastest, figures.time.iteration_s);
            }
          }
        }
      }
    }
  }
  SearchSpace space = space_of(4, load);
  space.fixed.recompute = Recomputation{};
  space.fixed.context = 1;
  const PlanSearch search = search_plans(planner, space);
  CHECK(search.fitting == fitting);
  REQUIRE_FALSE(search.best.empty());
  CHECK(search.best.front().iteration_s == fastest);
}

TEST_CASE("a note names why no plan of a search has tensor parallelism") {
  const auto note = [](const char* model, const FixedDegrees& fixed, std::int64_t devices) {
    const Graph graph = build_graph(load_model(model).spec, {Phase::prefill});
    return note_on_tensor(limits_of(graph, 128), fixed, devices);
  };
  CHECK(note("deepseek-v4-flash", {}, 8) ==
        "tensor parallelism is not modelled for this model: its attention reads compressed keys; "
        "plans with it may be faster");
  CHECK(note("mamba2-780m", {}, 8).value_or("").find("without attention") != std::string::npos);
  CHECK_FALSE(note("deepseek-v4-flash", {}, 1).has_value());
  FixedDegrees one_rank;
  one_rank.tensor = 1;
  CHECK_FALSE(note("deepseek-v4-flash", one_rank, 8).has_value());
  for (const char* const divided : {"llama-3-8b", "qwen3.5-122b-a10b", "deepseek-v3"}) {
    CHECK_FALSE(note(divided, {}, 8).has_value());
  }
}

TEST_CASE("a report on the best plans says where tensor parallelism is not among them") {
  PlanQuestion question;
  question.model = load_model("deepseek-v4-flash");
  question.rates = device_rates(find_machine("h200-141gb"), Purpose::serve, DType::bfloat16);
  question.devices = 4;
  question.load = {4, 4096};
  const PlanReport report = make_plan_report(question, {});
  REQUIRE_FALSE(report.plans.empty());
  CHECK(report.plans.front().choice.parallel.tensor == 1);
  REQUIRE_FALSE(report.notes.empty());
  CHECK(report.notes.back().starts_with("tensor parallelism is not modelled for this model"));
}

TEST_CASE("the number of threads does not change the result") {
  const Planner planner = trainer_with_memory(gpt(2048, 16, 24), 40);
  const PlanSearch one = search_plans(planner, space_of(32, {64, 1024}, 1));
  const PlanSearch four = search_plans(planner, space_of(32, {64, 1024}, 4));
  CHECK(one.evaluated == four.evaluated);
  CHECK(one.fitting == four.fitting);
  REQUIRE(one.best.size() == four.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    CHECK(one.best[i].choice == four.best[i].choice);
  }
  REQUIRE(one.pareto.size() == four.pareto.size());
  for (std::size_t i = 0; i < one.pareto.size(); ++i) {
    CHECK(one.pareto[i].choice == four.pareto[i].choice);
  }
}

TEST_CASE("shares of a search together are the search, whether plans fit or not") {
  for (const double memory_gb : {40.0, 0.1}) {
    const Planner planner = trainer_with_memory(gpt(2048, 16, 24), memory_gb);
    const PlanSearch all = search_plans(planner, space_of(32, {64, 1024}));
    for (const std::int64_t parts : {2, 3, 7}) {
      std::vector<PlanSearch> shares;
      for (std::int64_t part = parts - 1; part >= 0; --part) {
        SearchSpace space = space_of(32, {64, 1024});
        space.share = {part, parts};
        shares.push_back(search_plans(planner, space));
        CHECK(shares.back().evaluated < all.evaluated);
      }
      const PlanSearch joined = merged(shares, space_of(1, {}).keep);
      CHECK(joined.evaluated == all.evaluated);
      CHECK(joined.fitting == all.fitting);
      CHECK(
          std::ranges::equal(joined.best, all.best, {}, &RankedPlan::choice, &RankedPlan::choice));
      CHECK(std::ranges::equal(joined.pareto, all.pareto, {}, &RankedPlan::choice,
                               &RankedPlan::choice));
      REQUIRE(joined.least.has_value() == all.least.has_value());
      if (all.least) CHECK(joined.least->choice == all.least->choice);
    }
  }
}

TEST_CASE("plans are legal, use all devices, fit, and come fastest first") {
  const Planner planner = trainer_with_memory(gpt(2048, 16, 24), 40);
  SearchSpace space = space_of(16, {64, 1024});
  space.keep = 50;
  const PlanSearch search = search_plans(planner, space);
  const ShardingLimits limits = planner.limits(1024);
  CHECK(search.best.size() == 50);
  double before = 0;
  for (const RankedPlan& plan : search.best) {
    CHECK(plan.choice.parallel.devices() == 16);
    CHECK_FALSE(broken_rule(plan.choice, space.load, limits));
    CHECK(plan.memory_bytes <= planner.rates().memory_bytes);
    CHECK(plan.iteration_s >= before);
    before = plan.iteration_s;
  }
}

TEST_CASE("along the Pareto front less memory always costs time") {
  const Planner planner = trainer_with_memory(gpt(2048, 16, 24), 40);
  const PlanSearch search = search_plans(planner, space_of(16, {64, 1024}));
  REQUIRE(search.pareto.size() > 1);
  CHECK(search.pareto.front().iteration_s == search.best.front().iteration_s);
  for (std::size_t i = 1; i < search.pareto.size(); ++i) {
    CHECK(search.pareto[i].iteration_s > search.pareto[i - 1].iteration_s);
    CHECK(search.pareto[i].memory_bytes < search.pareto[i - 1].memory_bytes);
  }
}

TEST_CASE("if no plan fits, the smallest is returned") {
  const Planner planner = trainer_with_memory(gpt(12288, 96, 96), 40);
  const PlanSearch search = search_plans(planner, space_of(2, {2, 2048}));
  CHECK(search.fitting == 0);
  CHECK(search.best.empty());
  REQUIRE(search.least.has_value());
  CHECK(search.least->memory_bytes > planner.rates().memory_bytes);
}

TEST_CASE("no neighbour of the best plan both fits and is faster") {
  Planner planner = trainer_with_memory(gpt(2048, 16, 24), 40);
  const Load load{64, 1024};
  const PlanSearch search = search_plans(planner, space_of(16, load));
  const auto neighbours = neighbours_of(planner, search.best.front().choice, load);
  CHECK(neighbours.size() > 5);
  for (const Neighbour& neighbour : neighbours) {
    CAPTURE(neighbour.change);
    CHECK((!neighbour.fits || neighbour.plan.iteration_s >= search.best.front().iteration_s));
  }
}

TEST_CASE("a search tells how much of it is done") {
  const Planner planner = trainer_with_memory(gpt(2048, 16, 24), 40);
  SearchSpace space = space_of(16, {64, 1024});
  space.threads = 1;
  std::vector<double> done;
  space.progress = [&](double fraction) { done.push_back(fraction); };
  (void)search_plans(planner, space);
  REQUIRE(done.size() > 1);
  CHECK(done.front() == 0);
  CHECK(std::ranges::is_sorted(done));
  CHECK(done.back() < 1);
}

}  // namespace headroom::test
