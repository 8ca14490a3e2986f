// Sound of a multimodal model in plans.
#include <algorithm>

#include "headroom/error.h"
#include "headroom/plan.h"
#include "headroom/predict.h"
#include "headroom/report.h"
#include "support/data.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kPromptTokens = 2048;
constexpr std::int64_t kClips = 2;
constexpr std::int64_t kSeconds = 60;
constexpr std::int64_t kAudioTokens = kClips * 2 * 375;  // 12.5 a second, in segments of 30 s

Model hearing_model() {
  auto config = read_json(data_folder() / "towers/tiny/voxtral.config.json");
  config["audio_config"]["max_source_positions"] = 1500;
  Model model;
  model.spec = spec_of(config, "voxtral");
  return model;
}

WorkloadRequest prompt_with_sound() {
  WorkloadRequest request;
  request.seq_len = kPromptTokens;
  request.audio = kClips;
  request.audio_seconds = kSeconds;
  request.dtype = DType::bfloat16;
  request.attention = AttentionImplementation::fused;
  return request;
}

PlanQuery query_with_sound(Purpose purpose) {
  PlanQuery query;
  query.purpose = purpose;
  query.audio = kClips;
  query.audio_seconds = kSeconds;
  return query;
}

Planner planner_of(const PlanQuery& query) {
  return {hearing_model().spec, query,
          device_rates(find_machine("h100-80gb"), query.purpose, query.dtype)};
}

PlanQuery without_sound(PlanQuery query) {
  query.audio = 0;
  query.audio_seconds.reset();
  return query;
}

}  // namespace

TEST_CASE("with sound, analyze and fit give the same time to the first token") {
  AnalyzeReport report = make_analyze_report(hearing_model(), prompt_request(prompt_with_sound()));
  TimeRequest time;
  time.phase = MeasuredPhase::generate;
  time.new_tokens = 1;
  add_prediction(report, find_machine("h100-80gb"), time);
  Planner planner = planner_of(query_with_sound(Purpose::serve));
  const PlanFigures figures = planner.evaluate({}, {1, kPromptTokens});
  CHECK(*report.time->ttft_s == doctest::Approx(*figures.time.ttft_s).epsilon(1e-6));
  CHECK(planner.tower_tokens() == kAudioTokens);
}

TEST_CASE("a plan's activations have room for the audio tower") {
  PlanQuery query = query_with_sound(Purpose::serve);
  query.attention = AttentionImplementation::eager;
  WorkloadRequest request = prompt_with_sound();
  request.attention = query.attention;
  const AnalyzeReport report = make_analyze_report(hearing_model(), request);
  const Bindings values = bindings_of(report.workload, report.graph);
  Integer peak = 0;
  for (const LiveBytes& live : report.analysis.live) {
    peak = std::max(peak, live.bytes.evaluate(values));
  }
  CHECK(planner_of(query).evaluate({}, {1, kPromptTokens}).memory.activations == peak);
}

TEST_CASE("tensor parallelism and sequences of a pass repeat the audio tower") {
  const PlanQuery query = query_with_sound(Purpose::train);
  Planner planner = planner_of(query);
  Planner text = planner_of(without_sound(query));
  const auto saved_by_tower = [&](const PlanChoice& choice, std::int64_t batch) {
    const Load load{batch, kPromptTokens};
    return planner.evaluate(choice, load).memory.embedding_and_loss -
           text.evaluate(choice, load).memory.embedding_and_loss;
  };
  const Integer of_one = saved_by_tower({}, 1);
  CHECK(of_one > 0);
  PlanChoice choice;
  choice.micro_batch = 3;
  constexpr Integer kPositionIds = 8 * 1500;  // of a segment, one list for all of them
  CHECK(saved_by_tower(choice, 3) == 3 * (of_one - kPositionIds) + kPositionIds);
  choice = {};
  choice.parallel.tensor = 2;
  CHECK(saved_by_tower(choice, 1) == of_one);
}

TEST_CASE("only the first stage holds the audio tower, with or without sound") {
  PlanChoice choice;
  choice.parallel.pipeline = 2;
  const PlanQuery query = query_with_sound(Purpose::serve);
  CHECK(planner_of(query).stage_weights(choice) ==
        planner_of(without_sound(query)).stage_weights(choice));
}

TEST_CASE("plans refuse sound of a model without an audio tower") {
  const PlanQuery query = query_with_sound(Purpose::serve);
  const DeviceRates rates = device_rates(find_machine("h100-80gb"), query.purpose, query.dtype);
  CHECK_THROWS_AS((void)Planner(load_model("llama-3-8b").spec, query, rates), Error);
}

}  // namespace headroom::test
