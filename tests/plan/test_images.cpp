// Images of a multimodal model in plans and sweeps.
#include <algorithm>

#include "headroom/error.h"
#include "headroom/plan.h"
#include "headroom/predict.h"
#include "headroom/report.h"
#include "support/data.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kTokens = 2048;
constexpr ImageSize kSize{512, 768};

WorkloadRequest prompt_with_images(std::int64_t batch) {
  WorkloadRequest request;
  request.batch_size = batch;
  request.seq_len = kTokens;
  request.images = 2;
  request.image_size = kSize;
  request.dtype = DType::bfloat16;
  request.attention = AttentionImplementation::fused;
  return request;
}

PlanQuery query_with_images(Purpose purpose) {
  PlanQuery query;
  query.purpose = purpose;
  query.images = 2;
  query.image_size = kSize;
  return query;
}

Planner planner_of(const char* model, const PlanQuery& query) {
  return {load_model(model).spec, query,
          device_rates(find_machine("h100-80gb"), query.purpose, query.dtype)};
}

/// Bytes that the tower and its projectors save for the backward pass of one sequence, by the
/// ledger of analyze.
Integer saved_by_tower(const char* model) {
  WorkloadRequest request = prompt_with_images(1);
  request.phase = Phase::train;
  request.kernels = Kernels::fused;
  const AnalyzeReport report = make_analyze_report(load_model(model), request);
  const Bindings values = bindings_of(report.workload, report.graph);
  Integer bytes = 0;
  for (const SavedTensor& saved : report.analysis.saved) {
    const auto names = [&](const char* part) { return saved.path.find(part) != std::string::npos; };
    if (names("vision_tower") || names("projector") || names("deepstack."))
      bytes += (saved.repeat * saved.bytes).evaluate(values);
  }
  return bytes;
}

/// Bytes of the places of visual tokens, an index each: they replace embeddings, and DeepStack adds
/// others to them.
Integer positions_of_visual_tokens() {
  constexpr Integer kBytes = 8;
  constexpr Integer kUses = 4;  // the embeddings, and three layers of DeepStack
  constexpr Integer kBlock = 32;
  return 2 * kUses * kBytes * (kSize.height / kBlock) * (kSize.width / kBlock);
}

Integer saved_outside_layers(const char* model, const PlanQuery& query) {
  Planner planner = planner_of(model, query);
  return planner.evaluate({}, {1, kTokens}).memory.embedding_and_loss;
}

}  // namespace

TEST_CASE("with images, analyze and fit give the same time to the first token") {
  for (const char* const model : {"gemma-3-4b", "qwen3-vl-2b"}) {
    CAPTURE(std::string(model));
    AnalyzeReport report =
        make_analyze_report(load_model(model), prompt_request(prompt_with_images(1)));
    TimeRequest time;
    time.phase = MeasuredPhase::generate;
    time.new_tokens = 1;
    add_prediction(report, find_machine("h100-80gb"), time);
    Planner planner = planner_of(model, query_with_images(Purpose::serve));
    const PlanFigures figures = planner.evaluate({}, {1, kTokens});
    CHECK(*report.time->ttft_s == doctest::Approx(*figures.time.ttft_s).epsilon(1e-6));
  }
}

TEST_CASE("a plan's activations have room for the image tower") {
  PlanQuery query = query_with_images(Purpose::serve);
  query.attention = AttentionImplementation::eager;
  query.image_size = ImageSize{960, 1024};  // so that the tower has the peak
  WorkloadRequest request = prompt_with_images(1);
  request.attention = query.attention;
  request.image_size = query.image_size;
  const AnalyzeReport report = make_analyze_report(load_model("qwen3-vl-2b"), request);
  const Bindings values = bindings_of(report.workload, report.graph);
  Integer peak = 0;
  for (const LiveBytes& live : report.analysis.live) {
    peak = std::max(peak, live.bytes.evaluate(values));
  }
  Planner planner = planner_of("qwen3-vl-2b", query);
  CHECK(planner.evaluate({}, {1, kTokens}).memory.activations == peak);
}

TEST_CASE("tensor parallelism divides the text model and repeats the image tower") {
  Planner planner = planner_of("qwen3-vl-2b", query_with_images(Purpose::serve));
  PlanQuery text = query_with_images(Purpose::serve);
  text.images = 0;
  text.image_size.reset();
  Planner text_planner = planner_of("qwen3-vl-2b", text);
  const auto tower_seconds = [&](std::int64_t degree) {
    PlanChoice choice;
    choice.parallel.tensor = degree;
    const Load load{1, kTokens};
    return *planner.evaluate(choice, load).time.ttft_s -
           *text_planner.evaluate(choice, load).time.ttft_s;
  };
  CHECK(tower_seconds(1) > 0);
  CHECK(tower_seconds(4) == doctest::Approx(tower_seconds(1)).epsilon(1e-3));
}

TEST_CASE("training saves what the image tower saves, under any recomputation of the layers") {
  PlanQuery query = query_with_images(Purpose::train);
  PlanQuery text = query;
  text.images = 0;
  text.image_size.reset();
  const char* const model = "qwen3-vl-2b";
  const Integer with_images = saved_outside_layers(model, query);
  const Integer without = saved_outside_layers(model, text);
  CHECK(with_images - without - saved_by_tower(model) == positions_of_visual_tokens());
  Planner planner = planner_of(model, query);
  PlanChoice choice;
  choice.recompute = {Recompute::full, 1};
  CHECK(planner.evaluate(choice, {1, kTokens}).memory.embedding_and_loss == with_images);
}

TEST_CASE("the tower of a model with adapters has no backward pass") {
  PlanQuery query = query_with_images(Purpose::train);
  query.adapter.kind = AdapterKind::lora;
  PlanQuery text = query;
  text.images = 0;
  text.image_size.reset();
  CHECK(saved_outside_layers("qwen3-vl-2b", query) - saved_outside_layers("qwen3-vl-2b", text) ==
        positions_of_visual_tokens());
}

TEST_CASE("only the first stage runs and holds the image tower") {
  Planner planner = planner_of("qwen3-vl-2b", query_with_images(Purpose::serve));
  PlanChoice choice;
  choice.parallel.pipeline = 2;
  const std::vector<Integer> with_images = planner.stage_weights(choice);
  PlanQuery text = query_with_images(Purpose::serve);
  text.images = 0;
  text.image_size.reset();
  CHECK(planner_of("qwen3-vl-2b", text).stage_weights(choice) == with_images);
}

TEST_CASE("plans refuse images of a model without a tower") {
  CHECK_THROWS_AS((void)planner_of("llama-3-8b", query_with_images(Purpose::serve)), Error);
}

}  // namespace headroom::test
