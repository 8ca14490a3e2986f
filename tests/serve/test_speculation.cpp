// Speculative decoding and multi-token prediction, simulated.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "headroom/report.h"
#include "serve_questions.h"

namespace headroom::test {
namespace {

/// With proposals for each sequence and step.
ServeQuestion speculating(ServeQuestion question, Drafter drafter, std::int64_t tokens,
                          double acceptance) {
  question.speculation = Speculation{std::move(drafter), tokens, acceptance};
  return question;
}

}  // namespace

// 1 + a + a² + … + a^k tokens are expected of a step (arXiv 2211.17192, equation 1). The last step
// of an answer proposes fewer.
TEST_CASE("a step of speculative decoding gives the tokens of a geometric series") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(4, 100, 100, 600));
  CHECK(simulate(plain, degrees(1)).figures.tokens_per_step == 1);
  for (const double acceptance : {0.0, 0.6, 0.9, 1.0}) {
    const ServeQuestion question = speculating(plain, NgramLookup{}, 4, acceptance);
    double expected = 0;
    for (int i = 0; i <= 4; ++i) expected += std::pow(acceptance, i);
    CHECK(simulate(question, degrees(1)).figures.tokens_per_step ==
          doctest::Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("perfect proposals at no cost divide the time of a token") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 401));
  const ServeFigures slow = simulate(plain, degrees(1)).figures;
  const ServeFigures fast = simulate(speculating(plain, NgramLookup{}, 3, 1), degrees(1)).figures;
  // One prefill, and 400 tokens in steps of four: weights are read once for all of them.
  CHECK(fast.steps == 101);
  CHECK(fast.tpot->mean == doctest::Approx(slow.tpot->mean / 4).epsilon(0.03));
  const ServeFigures wasted = simulate(speculating(plain, NgramLookup{}, 3, 0), degrees(1)).figures;
  CHECK(wasted.steps == slow.steps);
  CHECK(wasted.tpot->mean >= slow.tpot->mean);
  CHECK(wasted.ttft.mean == slow.ttft.mean);
}

TEST_CASE("a draft model adds a decode step of its own for each proposal") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 401));
  const Model draft = load_model("llama-3.2-1b");
  const ServedPlan free = simulate(speculating(plain, NgramLookup{}, 3, 1), degrees(1));
  const ServedPlan drafted = simulate(speculating(plain, DraftModel{draft.spec}, 3, 1), degrees(1));
  Planner planner(draft.spec, plain.plan.query, plain.plan.rates);
  const double step_s = planner.evaluate({}, {1, 2200}).time.iteration_s;
  CHECK(drafted.figures.tpot->mean - free.figures.tpot->mean ==
        doctest::Approx(3 * step_s / 4).epsilon(0.01));
  // Llama 3.2 1B: 1,235,814,400 parameters in bfloat16, and 16 layers of the cache beside 32 layers
  // with heads twice as wide.
  const double left = static_cast<double>(free.cache.bytes) - 2.0 * 1'235'814'400;
  CHECK(static_cast<double>(drafted.cache.bytes) == doctest::Approx(left / 1.25).epsilon(1e-3));
}

// A layer of Llama 3 8B has 218,112,000 parameters, its head 525,336,576 and the final norm 4,096;
// the projection that joins embedding and hidden state has 4,096 · 8,192, its norms 2 · 4,096
// (arXiv 2412.19437, equation 21); the cache of 2,200 tokens has 2 · 1,024 values each. All are
// bfloat16.
TEST_CASE("a multi-token-prediction module adds a layer and the head for each proposal") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 401));
  const ServedPlan free = simulate(speculating(plain, NgramLookup{}, 3, 1), degrees(1));
  const ServedPlan drafted = simulate(speculating(plain, PredictionModule{}, 3, 1), degrees(1));
  constexpr double kJoining = 4'096.0 * 8'192 + 2 * 4'096;
  const double bytes = 2 * (218'112'000 + 525'336'576 + 4'096 + 2'200 * 2 * 1'024 + kJoining);
  const DeviceRates& rates = plain.plan.rates;
  const double step_s = bytes / (rates.memory_bytes_per_s * rates.efficiency.memory);
  CHECK(drafted.figures.tpot->mean - free.figures.tpot->mean ==
        doctest::Approx(3 * step_s / 4).epsilon(0.02));
  const double left = static_cast<double>(free.cache.bytes) - 2 * (218'112'000 + kJoining);
  CHECK(static_cast<double>(drafted.cache.bytes) == doctest::Approx(left * 32 / 33).epsilon(2e-4));
}

TEST_CASE("speculation answers every request, in a small cache and a pipeline too") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(20, 200, 1000, 200));
  question = speculating(question, PredictionModule{}, 2, 0.7);
  question.plan.rates.memory_bytes = Integer{20} << 30U;
  const ServeFigures one = simulate(question, degrees(1)).figures;
  CHECK(one.requests == 200);
  CHECK(one.tokens_per_step > 1.5);
  CHECK(simulate(question, degrees(1, 2)).figures.requests == 200);
  question.limits.admission = Admission::request;
  CHECK(simulate(question, degrees(1)).figures.preemptions == 0);
}

TEST_CASE("a draft model without tokens to generate is refused") {
  const ServeQuestion plain = question_for("gpt2", "h100-80gb", users(1, 1, 100, 10));
  const DraftModel encoder{load_model("bert-base").spec};
  CHECK_THROWS_AS((void)simulate(speculating(plain, encoder, 3, 0.5), degrees(1)), Error);
}

TEST_CASE("a drafter with another vocabulary is noted") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(2, 4, 100, 20));
  const auto is_noted = [&](const char* drafter) {
    const ServeQuestion question = speculating(plain, DraftModel{load_model(drafter).spec}, 3, 0.7);
    const ServeReport report = make_serve_report(question, PlanRequest{degrees(1), 1});
    return std::ranges::any_of(report.notes, [](const std::string& note) {
      return note.find("vocabulary") != std::string::npos;
    });
  };
  CHECK(is_noted("gpt2"));
  CHECK_FALSE(is_noted("llama-3.2-1b"));
}

TEST_CASE("a report states the seed of accepted proposals, and none where nothing is random") {
  const ServeQuestion plain = question_for("gpt2", "h100-80gb", users(2, 4, 100, 20));
  const auto seed = [](const ServeQuestion& question) {
    const ServeReport report = make_serve_report(question, PlanRequest{degrees(1), 1});
    const auto json = nlohmann::json::parse(render(report, {.format = Format::json}));
    return json["workload"]["traffic"]["seed"];
  };
  CHECK(seed(plain).is_null());
  CHECK(seed(speculating(plain, NgramLookup{}, 3, 0.7)) == 1);
}

}  // namespace headroom::test
