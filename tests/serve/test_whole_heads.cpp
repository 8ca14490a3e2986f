// Decode steps whose attention reads whole heads on one multiprocessor each: waves counted by hand,
// NIM's times for a key, and the simulation against the planner's batch.
#include "serve_questions.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kShort = 1024;
constexpr std::int64_t kLong = 9216;

ServeQuestion question_of(const std::string& model, const std::string& machine,
                          DecodeAttention attention) {
  ServeQuestion question = question_for(model, machine, users(64, 64, 16, 100));
  question.plan.query.decode_attention = attention;
  return question;
}

/// Microseconds of a layer for 1,000 more keys of each of `sequences`.
double of_keys(const std::string& model, const std::string& machine, std::int64_t tensor,
               std::int64_t sequences, DecodeAttention attention = DecodeAttention::whole) {
  const ServeQuestion question = question_of(model, machine, attention);
  Planner planner = planner_of(question);
  const auto seconds = [&](std::int64_t past_len) {
    return planner.decode_time(degrees(tensor), sequences, past_len).sequences.all;
  };
  const auto layers = static_cast<double>(question.plan.model.spec.main_stack().num_layers);
  return 1e9 * (seconds(kLong) - seconds(kShort)) / static_cast<double>(kLong - kShort) / layers;
}

}  // namespace

// 32 query heads on 132 multiprocessors: four sequences fill a wave.
TEST_CASE("sequences whose heads fit into a wave take as long as one, and the next one twice") {
  const double one = of_keys("llama-3-8b", "h100-80gb", 1, 1);
  CHECK(of_keys("llama-3-8b", "h100-80gb", 1, 4) == doctest::Approx(one));
  CHECK(of_keys("llama-3-8b", "h100-80gb", 1, 5) == doctest::Approx(2 * one));
  CHECK(of_keys("llama-3-8b", "h100-80gb", 2, 1) == doctest::Approx(one));
}

// Slopes of NIM's steps over their context (docs/device-time.md).
TEST_CASE("1,000 keys of a head take what NIM of 2024 took, with few users and with many") {
  CHECK(of_keys("llama-3-8b", "h100-80gb", 1, 1) == doctest::Approx(7.8).epsilon(0.1));
  CHECK(of_keys("llama-3-8b", "a100-80gb", 1, 1) == doctest::Approx(12.2).epsilon(0.15));
  CHECK(of_keys("llama-3-70b", "h100-80gb", 8, 10) == doctest::Approx(7.7).epsilon(0.1));
  CHECK(of_keys("llama-3-70b", "h100-80gb", 4, 10) == doctest::Approx(17).epsilon(0.1));
  CHECK(of_keys("llama-3-8b", "h100-80gb", 1, 50) == doctest::Approx(115).epsilon(0.15));
}

// 50 key heads of eight query heads are more than a quarter of 132: a block of threads for each.
TEST_CASE("many groups of eight query heads read their keys once, and the memory bounds them") {
  const double whole = of_keys("llama-3-70b", "h100-80gb", 4, 50);
  CHECK(whole ==
        doctest::Approx(of_keys("llama-3-70b", "h100-80gb", 4, 50, DecodeAttention::split)));
}

TEST_CASE("a batch that reads whole heads decodes as fast as the planner's batch") {
  const ServeQuestion question = question_of("llama-3-8b", "h100-80gb", DecodeAttention::whole);
  Planner planner = planner_of(question);
  double decode_s = 0;
  for (std::int64_t context = 17; context < 116; ++context) {
    decode_s += planner.evaluate(degrees(1), {64, context}).time.iteration_s;
  }
  const ServeFigures figures = simulate(question, degrees(1)).figures;
  CHECK(figures.tpot->p50 * 99 == doctest::Approx(decode_s).epsilon(0.01));
}

}  // namespace headroom::test
