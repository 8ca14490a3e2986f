// The fewest devices that meet targets, the best plans on given ones, and the cheapest machine.
#include <algorithm>
#include <cmath>

#include "headroom/no_plan_fits.h"
#include "serve_questions.h"

namespace headroom::test {
namespace {

/// True if the plan is legal, has room for the requests, and meets the targets.
bool meets(const ServeQuestion& question, const PlanChoice& choice) {
  try {
    return simulate(question, choice).verdict.met();
  } catch (const Error&) {
    return false;
  }
}

/// True if any split of `devices` into degrees meets the targets.
bool any_plan_meets(const ServeQuestion& question, std::int64_t devices) {
  for (std::int64_t tensor = 1; tensor <= devices; ++tensor) {
    for (std::int64_t pipeline = 1; tensor * pipeline <= devices; ++pipeline) {
      if (devices % (tensor * pipeline) != 0) continue;
      PlanChoice choice = degrees(tensor, pipeline, devices / tensor / pipeline);
      for (std::int64_t expert = 1; expert <= choice.parallel.data; ++expert) {
        choice.parallel.expert = expert;
        if (meets(question, choice)) return true;
      }
    }
  }
  return false;
}

ServeQuestion with_targets(ServeQuestion question, double ttft_s, double tpot_s) {
  question.targets.ttft_s = ttft_s;
  question.targets.tpot_s = tpot_s;
  return question;
}

}  // namespace

TEST_CASE("a search answers with the fewest devices that meet the targets") {
  ServeQuestion question = with_targets(
      question_for("llama-3-70b", "h100-80gb", poisson(10, 300, 1024, 256)), 0.5, 0.03);
  const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
  const ServedPlan& best = report.plans.front();
  CHECK(best.verdict.met());
  CHECK(best.figures.ttft.at_target <= 0.5);
  CHECK(best.figures.tpot->at_target <= 0.03);
  const std::int64_t devices = best.choice.parallel.devices();
  CHECK(report.question.plan.devices == devices);
  for (std::int64_t fewer = 1; fewer < devices; ++fewer) CHECK(!any_plan_meets(question, fewer));
  // The targets are met at the largest rate, and missed at a tenth more.
  REQUIRE(report.largest_rate);
  for (const auto& [factor, met] : {std::pair(1.0, true), std::pair(1.1, false)}) {
    question.traffic.arrivals = PoissonArrivals{factor * *report.largest_rate};
    CHECK(simulate(question, best.choice).verdict.met() == met);
  }
}

TEST_CASE("no smaller number of devices meets the targets, with experts and many replicas too") {
  struct Case {
    const char* model;
    const char* machine;
    double rate;
  };
  for (const Case& one : {Case{"mixtral-8x7b", "a100-80gb", 40}, Case{"llama-3-8b", "l40s", 12}}) {
    const ServeQuestion question = with_targets(
        question_for(one.model, one.machine, poisson(one.rate, 200, 1024, 128)), 0.5, 0.03);
    const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
    INFO(one.model);
    REQUIRE(report.plans.front().verdict.met());
    const std::int64_t devices = report.plans.front().choice.parallel.devices();
    REQUIRE(devices > 2);
    for (std::int64_t fewer = 1; fewer < devices; ++fewer) CHECK(!any_plan_meets(question, fewer));
  }
}

TEST_CASE("no plan without room is in the answer, though it has room on fewer devices") {
  // Communication between more devices takes what the weights leave of 15 GB.
  for (const char* machine : {"t4", "l4"}) {
    ServeQuestion question =
        with_targets(question_for("llama-3-70b", machine, poisson(20, 200, 1024, 64)), 0.5, 0.03);
    question.limits = default_limits(question.plan.rates);
    const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
    for (const ServedPlan& plan : report.plans) {
      CHECK(plan.cache.requests > 0);
      CHECK(plan.figures.ttft.at_target > 0);
      CHECK(plan.figures.duration_s > 0);
      CHECK(plan.figures.tpot.has_value());
    }
    CHECK(!report.plans.front().verdict.met());
  }
}

TEST_CASE("a search tells the fraction that is done, in ascending order") {
  const ServeQuestion question =
      with_targets(question_for("llama-3-70b", "h100-80gb", poisson(2, 50, 256, 32)), 0.5, 0.03);
  std::vector<double> told;
  (void)make_serve_report(question, FixedDegrees{}, {1, 16},
                          [&](double fraction) { told.push_back(fraction); });
  REQUIRE(told.size() > 1);
  CHECK(std::ranges::is_sorted(told));
  CHECK(told.front() == 0);
  CHECK(told.back() <= 1);
}

TEST_CASE("a search on a given number of devices finds the best of its plans") {
  const ServeQuestion question = with_targets(
      question_for("llama-3-70b", "h100-80gb", poisson(10, 200, 1024, 256)), 0.5, 0.03);
  const ServeReport report = make_serve_report(question, FixedDegrees{}, {12, 12});
  for (const ServedPlan& plan : report.plans) CHECK(plan.choice.parallel.devices() == 12);
  CHECK(report.plans.front().verdict.met());
  CHECK(!report.closest_below);
  FixedDegrees fixed;
  fixed.tensor = 2;
  const ServeReport narrow = make_serve_report(question, fixed, {12, 12});
  for (const ServedPlan& plan : narrow.plans) CHECK(plan.choice.parallel.tensor == 2);
  CHECK_THROWS_AS((void)make_serve_report(question, FixedDegrees{}, {1, 1}), NoPlanFits);
}

TEST_CASE("the tightest target is the one with the largest ratio, and plans are in its order") {
  const ServeQuestion question = with_targets(
      question_for("llama-3-70b", "h100-80gb", poisson(10, 200, 1024, 256)), 0.5, 0.03);
  const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
  double last = 0;
  for (const ServedPlan& plan : report.plans) {
    const auto tightest = tightest_target(plan.figures, question.targets);
    REQUIRE(tightest);
    const double ttft = plan.figures.ttft.at_target / 0.5;
    const double tpot = plan.figures.tpot->at_target / 0.03;
    CHECK(tightest->ratio == doctest::Approx(std::max(ttft, tpot)));
    CHECK(tightest->latency == (ttft > tpot ? LatencyKind::ttft : LatencyKind::tpot));
    CHECK((tightest->ratio <= 1) == plan.verdict.met());
    CHECK(tightest->ratio >= last);
    last = tightest->ratio;
  }
  REQUIRE(report.closest_below);
  CHECK(!report.closest_below->verdict.met());
  CHECK(report.closest_below->choice.parallel.devices() < report.question.plan.devices);
  CHECK(!tightest_target(report.plans.front().figures, LatencyTargets{}));
}

namespace {

/// Llama 3 8B with targets on each machine, at the price of a device-hour.
std::vector<ServeQuestion> questions_on(const std::vector<std::pair<std::string, double>>& machines,
                                        double tpot_s) {
  std::vector<ServeQuestion> questions;
  for (const auto& [machine, price] : machines) {
    questions.push_back(
        with_targets(question_for("llama-3-8b", machine, poisson(4, 100, 1024, 128)), 1, tpot_s));
    questions.back().price_per_hour = price;
  }
  return questions;
}

std::vector<std::string> names_of(const ServeMachinesReport& report) {
  std::vector<std::string> names;
  for (const ServeReport& one : report.machines) names.push_back(one.question.plan.rates.name);
  return names;
}

}  // namespace

TEST_CASE("machines are compared by the price of the fewest devices of each") {
  const std::vector<ServeQuestion> questions =
      questions_on({{"h100-80gb", 9.0}, {"l40s", 0.5}, {"a100-80gb", 2.0}}, 0.05);
  const ServeMachinesReport report = make_serve_machines_report(questions, FixedDegrees{}, {1, 16});
  REQUIRE(report.machines.size() == 3);
  double last = 0;
  for (const ServeReport& one : report.machines) {
    const auto asked = std::ranges::find_if(questions, [&](const ServeQuestion& question) {
      return question.plan.rates.name == one.question.plan.rates.name;
    });
    REQUIRE(asked != questions.end());
    const ServeReport alone = make_serve_report(*asked, FixedDegrees{}, {1, 16});
    const ServedPlan& plan = one.plans.front();
    CHECK(plan.choice == alone.plans.front().choice);
    const double devices = static_cast<double>(plan.choice.parallel.devices());
    const auto price = price_of(one);
    REQUIRE(price);
    CHECK(price->per_hour == doctest::Approx(devices * *asked->price_per_hour));
    const double hours = 1e6 / plan.figures.output_tokens_per_s / 3600;
    CHECK(price->per_million_output_tokens == doctest::Approx(price->per_hour * hours));
    CHECK(price->per_hour >= last);
    last = price->per_hour;
  }
  CHECK(names_of(report).back() == "h100-80gb");
}

TEST_CASE("machines that miss the targets come last, and those without room are named") {
  const std::vector<ServeQuestion> questions =
      questions_on({{"rtx-3060", 0.1}, {"l4", 0.1}, {"h100-80gb", 9.0}}, 0.02);
  const ServeMachinesReport report = make_serve_machines_report(questions, FixedDegrees{}, {1, 1});
  CHECK(names_of(report) == std::vector<std::string>{"h100-80gb", "l4"});
  CHECK(report.machines.front().plans.front().verdict.met());
  CHECK(!report.machines.back().plans.front().verdict.met());
  CHECK(report.too_small == std::vector<std::string>{"rtx-3060"});
}

TEST_CASE("targets for the slowest steps are met by all of nine of ten runs") {
  ServeQuestion question =
      with_targets(question_for("llama-3-70b", "h100-80gb", poisson(4, 200, 1024, 256)), 5, 0.06);
  const ServeReport predicted = make_serve_report(question, FixedDegrees{}, {1, 64});
  question.targets.steps = TargetSteps::slowest;
  const ServeReport slowest = make_serve_report(question, FixedDegrees{}, {1, 64});
  const ServedPlan& best = slowest.plans.front();
  CHECK(best.verdict.met());
  CHECK(best.choice.parallel.devices() >= predicted.plans.front().choice.parallel.devices());
  CHECK(best.slowest.value().tpot->at_target <= 0.06);
  CHECK(best.slowest->ttft.at_target <= 5);
  CHECK(runs_that_meet(best, question.targets) == RunsThatMeet::all);
  // The slowest step is 1 + time_range times as long: alone, a token takes so much longer.
  CHECK(best.slowest->tpot->p50 >= (1 + best.time_range) * best.figures.tpot->p50 * 0.999);
}

TEST_CASE("a plan whose slowest runs miss the targets meets them in some runs") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(1, 100, 512, 128));
  const ServedPlan plan = make_serve_report(question, PlanRequest{}).plans.front();
  CHECK(!runs_that_meet(plan, {}));
  const auto met_by = [&](double tpot_s) {
    LatencyTargets targets;
    targets.tpot_s = tpot_s;
    return runs_that_meet(plan, targets);
  };
  // at_target is the percentile of the question, 99.
  CHECK(met_by(plan.slowest.value().tpot->at_target) == RunsThatMeet::all);
  CHECK(met_by(plan.figures.tpot->at_target) == RunsThatMeet::some);
  CHECK(met_by(plan.fastest.value().tpot->at_target) == RunsThatMeet::some);
  CHECK(met_by(0.9 * plan.fastest->tpot->at_target) == RunsThatMeet::none);
}

TEST_CASE("searches for sizes say where no plan has tensor parallelism") {
  const ServeQuestion question =
      with_targets(question_for("deepseek-v4-flash", "h200-141gb", users(1, 2, 100, 10)), 60, 1);
  const auto is_noted = [](const std::vector<std::string>& notes) {
    return std::ranges::any_of(notes, [](const std::string& note) {
      return note.starts_with("tensor parallelism is not modelled for this model");
    });
  };
  CHECK(is_noted(make_serve_report(question, FixedDegrees{}, {1, 8}).notes));
  CHECK(is_noted(make_serve_machines_report({question}, FixedDegrees{}, {1, 8}).notes));
}

TEST_CASE("machines are compared only with targets") {
  std::vector<ServeQuestion> questions = questions_on({{"h100-80gb", 9.0}}, 0.02);
  questions.front().targets = {};
  CHECK_THROWS_AS((void)make_serve_machines_report(questions, FixedDegrees{}, {1, 1}), Error);
  CHECK_THROWS_AS((void)make_serve_machines_report({}, FixedDegrees{}, {1, 1}), Error);
}

// 1000 requests fit the caches of four devices at once, so that any rate keeps a TPOT.
TEST_CASE("the largest rate is at most what the devices answer") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(5, 1000, 1000, 250));
  question.targets.tpot_s = 0.06;
  const PlanRequest plan{degrees(1, 1, 4), 1};
  const double rate = make_serve_report(question, plan).largest_rate.value();
  CHECK(rate > 5);
  question.traffic.arrivals = PoissonArrivals{1000};
  question.traffic.requests = 20'000;
  const ServeFigures most = simulate(question, plan.choice).figures;
  CHECK(rate < 1.1 * most.requests_per_s);
  CHECK(queue_grows(most));
}

TEST_CASE("a queue does not grow where requests are answered as they come, however few") {
  for (const std::int64_t requests : {3, 50, 1000}) {
    const ServeQuestion question =
        question_for("llama-3-8b", "h100-80gb", poisson(5, requests, 1000, 250));
    CHECK_FALSE(queue_grows(simulate(question, PlanChoice{}).figures));
  }
}

// 64 prompts of 1000 tokens in one step have the activations of one prompt of 64,000.
TEST_CASE("a long last answer is no queue") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(1, 30, 100, 10));
  TraceArrivals trace;
  for (int i = 0; i < 30; ++i) trace.requests.push_back({1.0 * i, 100, i % 3 == 2 ? 2000 : 10});
  question.traffic.arrivals = trace;
  CHECK_FALSE(queue_grows(simulate(question, PlanChoice{}).figures));
}

TEST_CASE("a step of several prompts has the activations of as many tokens") {
  const auto cache_of = [](std::int64_t prompts, std::int64_t tokens) {
    ServeQuestion question =
        question_for("llama-3.1-8b", "h100-80gb", users(prompts, prompts, tokens, 2));
    question.limits.max_sequences = prompts;
    question.limits.batched_tokens = 64'000;
    return simulate(question, PlanChoice{}).cache.bytes;
  };
  const Integer one = cache_of(1, 63'999);
  const Integer many = cache_of(64, 999);
  // The logits of 64 sequences are less than 1 % of the activations.
  CHECK(many <= one);
  CHECK(many > one - one / 100);
}

TEST_CASE("degrees that no number of devices allows name the rule that they break") {
  const ServeQuestion question =
      with_targets(question_for("llama-3-8b", "h100-80gb", users(1, 2, 100, 10)), 60, 1);
  FixedDegrees experts;
  experts.expert = 2;
  CHECK_THROWS_AS((void)make_serve_report(question, experts, {1, 8}), IllegalPlan);
  experts.expert = 16;  // on 16 devices
  const ServeQuestion routed =
      with_targets(question_for("deepseek-v3", "h200-141gb", users(1, 2, 100, 10)), 60, 1);
  CHECK_THROWS_AS((void)make_serve_report(routed, experts, {1, 8}), NoPlanFits);
  FixedDegrees tensor;
  for (const std::int64_t degree : {std::int64_t{3}, std::int64_t{1} << 40U}) {
    tensor.tensor = degree;
    CHECK_THROWS_AS((void)make_serve_report(question, tensor, {1, 8}), IllegalPlan);
  }
  tensor.pipeline = std::int64_t{1} << 40U;
  CHECK_THROWS_AS((void)make_serve_report(question, tensor, {1, 8}), IllegalPlan);
}

TEST_CASE("a target for TPOT is refused where every answer has one token") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(5, 10, 100, 1));
  question.targets.tpot_s = 1;
  CHECK_THROWS_AS((void)make_serve_report(question, PlanRequest{}), Error);
  CHECK_THROWS_AS((void)make_serve_report(question, FixedDegrees{}, {1, 2}), Error);
}

// 100 requests at 1e-6 a second take 3 years; at a hundredth of that, more than can be simulated.
TEST_CASE("a target that no rate meets is reported at the smallest rates, too") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(1e-6, 100, 1000, 100));
  question.targets.tpot_s = 1e-6;
  const ServeReport report = make_serve_report(question, PlanRequest{});
  CHECK(!report.plans.front().verdict.met());
  CHECK(!report.largest_rate);
}

}  // namespace headroom::test
