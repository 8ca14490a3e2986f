// Predicted times against their parts.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/report.h"

using namespace headroom;

namespace {

AnalyzeReport predicted(const std::string& model, const WorkloadRequest& request,
                        const TimeRequest& time, const std::string& machine = "a100-80gb") {
  AnalyzeReport report = make_analyze_report(load_model(model), request);
  add_prediction(report, find_machine(machine), time);
  return report;
}

WorkloadRequest request_of(std::int64_t seq_len, Phase phase = Phase::prefill) {
  WorkloadRequest request;
  request.phase = phase;
  request.dtype = DType::bfloat16;
  if (phase == Phase::decode) {
    request.past_len = seq_len;
  } else {
    request.seq_len = seq_len;
  }
  return request;
}

double seconds_outside_head(const AnalyzeReport& report) {
  double seconds = 0;
  for (const OperatorTime& one : report.time->operators) {
    if (!one.path.starts_with("head.")) seconds += one.time_s;
  }
  return seconds;
}

}  // namespace

TEST_CASE("without tiles, time by a datasheet is every operator's roofline at its efficiencies") {
  MachineProfile machine = find_machine("a100-80gb");
  auto& rates = std::get<DatasheetRates>(machine.rates);
  rates.processors.reset();
  AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), request_of(512));
  add_prediction(report, machine, {});
  const Bindings values = bindings_of(report.workload, report.graph);
  const auto number = [&](const Expr& expr) { return static_cast<double>(expr.evaluate(values)); };
  const Efficiency reached = efficiency_of(rates, Purpose::serve, DType::bfloat16).fractions;
  double expected = 0;
  auto node = report.analysis.nodes.begin();
  for (const Block& block : report.graph.blocks) {
    for (std::size_t i = 0; i < block.nodes.size(); ++i, ++node) {
      const Cost& cost = node->cost.forward;
      const double compute = number(cost.matrix_flops) / (312e12 * reached.matrix);
      const double memory =
          (number(cost.bytes_read) + number(cost.bytes_written)) / (2039e9 * reached.memory);
      const double fixed = node->weights_read.empty() ? 0 : 9e-6 * number(block.repeat);
      expected += fixed + std::max(compute, memory);
    }
  }
  CHECK(report.time->total_s == doctest::Approx(expected).epsilon(1e-9));
  CHECK(report.time->basis == TimeBasis::assumed);
}

TEST_CASE("whole tiles never make a GEMM faster, and float32 has none") {
  MachineProfile machine = find_machine("a100-80gb");
  MachineProfile without = machine;
  std::get<DatasheetRates>(without.rates).processors.reset();
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    for (const std::int64_t tokens : {1, 17, 128, 512, 1000}) {
      CAPTURE(name_of(dtype));
      CAPTURE(tokens);
      WorkloadRequest request = request_of(tokens);
      request.dtype = dtype;
      const AnalyzeReport report = make_analyze_report(load_model("bert-base"), request);
      AnalyzeReport tiled = report;
      AnalyzeReport free = report;
      add_prediction(tiled, machine, {});
      add_prediction(free, without, {});
      CHECK(tiled.time->total_s >= free.time->total_s);
      if (dtype == DType::float32) CHECK(tiled.time->total_s == free.time->total_s);
    }
  }
}

TEST_CASE("a datasheet predicts models of every storage, which this machine may not run") {
  for (const WeightType type :
       {WeightType::float8, WeightType::int8, WeightType::int4, WeightType::nf4, WeightType::mxfp4,
        WeightType::nvfp4, WeightType::q8_0, WeightType::q4_k_m}) {
    CAPTURE(name_of(type));
    WorkloadRequest request = request_of(64);
    request.weights = type;
    AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), request);
    add_prediction(report, find_machine("h100-80gb"), {});
    CHECK(report.time->total_s > 0);
    CHECK(report.run->weight_bytes == report.figures.weight_bytes);
  }
  AnalyzeReport stored = make_analyze_report(load_model("deepseek-v3"), request_of(64));
  add_prediction(stored, find_machine("h100-80gb"), {});
  CHECK(stored.time->total_s > 0);
}

TEST_CASE("operators sum to the total, and the range contains it") {
  for (const char* model : {"bert-base", "gpt2", "t5-small", "vit-base-patch16-224"}) {
    WorkloadRequest request;
    const AnalyzeReport report = predicted(model, request, {});
    double sum = 0;
    for (const OperatorTime& one : report.time->operators) {
      CHECK(one.low_s <= one.time_s);
      CHECK(one.time_s <= one.high_s);
      CHECK(one.roofline_share <= 1);
      CHECK(one.low_s >= doctest::Approx(one.roofline_share * one.time_s));
      sum += one.time_s;
    }
    CHECK(report.time->total_s == doctest::Approx(sum));
    CHECK(report.time->low_s < report.time->total_s);
    CHECK(report.time->high_s > report.time->total_s);
  }
}

TEST_CASE("a decode step of one sequence is memory-bound, a long prompt compute-bound") {
  CHECK(predicted("llama-3-8b", request_of(127, Phase::decode), {}).time->bound == Bound::memory);
  CHECK(predicted("llama-3-8b", request_of(4096), {}).time->bound == Bound::compute);
}

TEST_CASE("a generation is its prefill plus its decode steps") {
  TimeRequest request;
  request.phase = MeasuredPhase::generate;
  request.new_tokens = 33;
  const AnalyzeReport whole = predicted("llama-3-8b", prompt_request(request_of(100)), request);
  const AnalyzeReport prefill = predicted("llama-3-8b", request_of(100), {});
  // The prompt's head runs for its last token only.
  request.new_tokens = 1;
  const AnalyzeReport prompt = predicted("llama-3-8b", prompt_request(request_of(100)), request);
  CHECK(*whole.time->ttft_s == doctest::Approx(prompt.time->total_s));
  CHECK(seconds_outside_head(prompt) == doctest::Approx(seconds_outside_head(prefill)));
  CHECK(prompt.time->total_s < prefill.time->total_s);
  CHECK(whole.time->total_s == doctest::Approx(*whole.time->ttft_s + 32 * *whole.time->tpot_s));
  // The steps see 101 to 132 keys; the middle step has their average cost.
  const AnalyzeReport first = predicted("llama-3-8b", request_of(100, Phase::decode), {});
  const AnalyzeReport last = predicted("llama-3-8b", request_of(131, Phase::decode), {});
  CHECK(*whole.time->tpot_s > first.time->total_s);
  CHECK(*whole.time->tpot_s < last.time->total_s);
  // FLOPs are the exact sum over all passes.
  Integer flops = prompt.figures.forward.matrix_flops;
  for (std::int64_t past = 100; past < 132; ++past) {
    flops +=
        predicted("llama-3-8b", request_of(past, Phase::decode), {}).figures.forward.matrix_flops;
  }
  CHECK(whole.run->matrix_flops == flops);
}

TEST_CASE("a generation says what bounds its prefill and its decode steps") {
  TimeRequest request;
  request.phase = MeasuredPhase::generate;
  request.new_tokens = 8;
  const TimePrediction time = *predicted("llama-3-8b", request_of(4096), request).time;
  CHECK(time.first_bound == Bound::compute);
  CHECK(time.decode_bound == Bound::memory);
  for (const OperatorTime& one : time.operators) {
    if (one.path != "decoder.layers.mlp.down") continue;
    CHECK(one.bound == Bound::compute);
    CHECK(one.decode_bound == Bound::memory);
  }
  // 7 steps of some 10 ms beside a prompt of some 280 ms; 100 times as many steps.
  CHECK(time.bound == Bound::compute);
  request.new_tokens = 801;
  CHECK(predicted("llama-3-8b", request_of(4096), request).time->bound == Bound::memory);
  CHECK_FALSE(predicted("llama-3-8b", request_of(4096), {}).time->decode_bound);
}

TEST_CASE("only decoders can generate") {
  TimeRequest request;
  request.phase = MeasuredPhase::generate;
  request.new_tokens = 4;
  CHECK_THROWS_AS((void)predicted("bert-tiny", {}, request), Error);
  CHECK_THROWS_AS((void)predicted("vit-tiny-patch16-224", {}, request), Error);
  CHECK_NOTHROW((void)predicted("t5-small", {}, request));
}

TEST_CASE("a token count beyond 64 bits means many rows, not few") {
  WorkloadRequest request = request_of(std::int64_t{1} << 33);
  request.batch_size = std::int64_t{1} << 31;
  const AnalyzeReport report = predicted("gpt2", request, {});
  CHECK(report.time->tokens_per_s * report.time->total_s == doctest::Approx(0x1p64));
  // Many rows: weights are packed in float32, not streamed in bfloat16.
  CHECK(predict_held_weight_bytes(report.model.spec, report.workload, {}) >=
        4 * report.figures.parameters);
}

TEST_CASE("the time of a training step is not predicted") {
  CHECK_THROWS_AS((void)predicted("gpt2", request_of(64, Phase::train), {}), Error);
}

TEST_CASE("drift scales memory time by memory drift and the rest by compute drift") {
  TimePrediction prediction;
  prediction.total_s = 3;
  prediction.tokens_per_s = 10;
  prediction.operators = {{"products", 1, 1, 1, Bound::compute, {}, 1, 1},
                          {"streams", 2, 2, 2, Bound::memory, {}, 0, 1}};
  CHECK(total_with(prediction, {2, 1.5}) == 5);
  const TimePrediction slower = with_drift(prediction, {2, 1.5}, 10);
  CHECK(slower.total_s == doctest::Approx(10));
  CHECK(slower.operators[0].time_s == doctest::Approx(4));
  CHECK(slower.operators[1].time_s == doctest::Approx(6));
  CHECK(slower.tokens_per_s == doctest::Approx(3));
}

TEST_CASE("a type without a rate in the datasheet is an error") {
  WorkloadRequest request = request_of(128);
  CHECK(predicted("gpt2", request, {}, "tpu-v5p").time.has_value());
  request.dtype = DType::float32;
  CHECK_THROWS_WITH_AS((void)predicted("gpt2", request, {}, "tpu-v5p"),
                       doctest::Contains("no rate for float32"), Error);
}
