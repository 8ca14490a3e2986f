// Times of llama.cpp, beside results of llama-bench. reports/published.md judges all of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "headroom/device_choice.h"
#include "headroom/engine_rates.h"
#include "headroom/llama_cpp_rates.h"
#include "headroom/plan_report.h"
#include "headroom/predict.h"
#include "headroom/report.h"

using namespace headroom;

namespace {

constexpr auto kEager = AttentionImplementation::eager;
constexpr auto kFused = AttentionImplementation::fused;

/// A result of llama-bench on one device: a prompt of 512 tokens (pp512), or the decode step in the
/// middle of as many (tg) tokens.
struct BenchRow {
  const char* machine;
  const char* model;
  WeightType weights;
  AttentionImplementation attention;
  double prompt_tokens_per_s;
  std::int64_t generated;
  double tokens_per_s;
};

// tests/data/logs/llamacpp_logs.jsonl: github.com/XiongjieDai/GPU-Benchmarks-on-LLM-Inference, May
// 2024, and github.com/kyuz0/amd-strix-halo-toolboxes, 2026 (build 9187).
constexpr std::array kRows{
    BenchRow{"rtx-3090", "llama-3-8b", WeightType::q4_k_m, kEager, 2978.34, 512, 89.67},
    BenchRow{"rtx-3080", "llama-3-8b", WeightType::q4_k_m, kEager, 3728.86, 512, 109.57},
    BenchRow{"rtx-4080", "llama-3-8b", WeightType::q4_k_m, kEager, 5389.74, 512, 108.15},
    BenchRow{"rtx-4090", "llama-3-8b", WeightType::float16, kEager, 9382.00, 512, 54.84},
    BenchRow{"a40", "llama-3-8b", WeightType::float16, kEager, 4203.75, 512, 34.26},
    BenchRow{"l40s", "llama-3-70b", WeightType::q4_k_m, kEager, 673.63, 512, 15.46},
    BenchRow{"rtx-a6000", "llama-3-8b", WeightType::q4_k_m, kEager, 3780.55, 512, 105.39},
    BenchRow{"rtx-6000-ada", "llama-3-8b", WeightType::float16, kEager, 6663.13, 512, 52.32},
    BenchRow{"h100-80gb-pcie", "llama-3-8b", WeightType::float16, kEager, 10815.51, 512, 68.03},
    BenchRow{"a100-80gb", "llama-3-8b", WeightType::q4_k_m, kEager, 5947.64, 512, 135.04},
    BenchRow{"a100-80gb", "llama-3-70b", WeightType::q4_k_m, kEager, 817.58, 512, 24.61},
    BenchRow{"ryzen-ai-max-395", "qwen3.5-27b", WeightType::q8_0, kFused, 371.42, 128, 6.51},
    BenchRow{"ryzen-ai-max-395", "qwen3.5-35b-a3b", WeightType::q4_k_m, kFused, 1085.14, 128,
             51.47},
    BenchRow{"ryzen-ai-max-395", "qwen3.5-35b-a3b", WeightType::bfloat16, kFused, 525.94, 128,
             26.01},
    // tests/data/logs/llama_bench_apple.csv
    BenchRow{"apple-m2-ultra", "llama-3-8b", WeightType::q4_k_m, kEager, 994.04, 512, 78.81},
    BenchRow{"apple-m2-ultra", "llama-3-8b", WeightType::float16, kEager, 1175.40, 512, 36.90},
    BenchRow{"apple-m3-max", "llama-3-8b", WeightType::float16, kEager, 769.84, 512, 22.04},
    BenchRow{"apple-m3-max", "llama-3-70b", WeightType::q4_k_m, kEager, 70.19, 512, 7.65},
    BenchRow{"apple-m3-pro", "llama-3-8b", WeightType::q4_k_m, kFused, 324.32, 128, 25.75},
};

PlanQuery query_of(const BenchRow& row) {
  PlanQuery query;
  query.dtype = query.kv_dtype = DType::float16;
  query.weights = row.weights;
  query.attention = row.attention;
  return query;
}

/// The plan of one device with `seq_len` tokens in its cache, by the engine that is asked for.
PlanTime time_of(const BenchRow& row, std::int64_t seq_len, std::optional<Engine> engine) {
  const Model model = load_model(row.model);
  const PlanQuery query = query_of(row);
  Planner planner(model.spec, query,
                  engine_rates(find_machine(row.machine), model.spec, query, engine));
  return planner.evaluate(PlanChoice{}, {1, seq_len}).time;
}

PlanTime step_of(const BenchRow& row, std::optional<Engine> engine) {
  return time_of(row, row.generated / 2 + 1, engine);
}

TimeRanges ranges_of(const BenchRow& row) {
  const Model model = load_model(row.model);
  return engine_rates(find_machine(row.machine), model.spec, query_of(row), Engine::llama_cpp)
      .time_range;
}

double efficiency_on(const char* machine, WeightType weights) {
  const Model model = load_model("llama-3-8b");
  PlanQuery query;
  query.weights = weights;
  return engine_rates(find_machine(machine), model.spec, query, Engine::llama_cpp)
      .efficiency.matrix;
}

}  // namespace

TEST_CASE("nine of ten decode steps of llama-bench lie in their ranges, half within 20 %") {
  std::vector<double> errors;
  int outside = 0;
  for (const BenchRow& row : kRows) {
    const PlanTime step = step_of(row, Engine::llama_cpp);
    INFO(row.machine, " ", row.model, " ", step.iteration_s * row.tokens_per_s);
    errors.push_back(std::abs(std::log(step.iteration_s * row.tokens_per_s)));
    if (1 / row.tokens_per_s < step.low_s || 1 / row.tokens_per_s > step.high_s) ++outside;
  }
  CHECK(outside <= 1);
  std::ranges::sort(errors);
  CHECK(errors[errors.size() / 2] < std::log(1.2));
}

TEST_CASE("nine of ten prompts of llama-bench lie in the range of GEMMs, half within 25 %") {
  std::vector<double> errors;
  int outside = 0;
  for (const BenchRow& row : kRows) {
    const double ratio =
        *time_of(row, 512, Engine::llama_cpp).ttft_s * row.prompt_tokens_per_s / 512;
    INFO(row.machine, " ", row.model, " ", ratio);
    errors.push_back(std::abs(std::log(ratio)));
    if (errors.back() > std::log1p(ranges_of(row).compute)) ++outside;
  }
  CHECK(outside <= 1);
  std::ranges::sort(errors);
  CHECK(errors[errors.size() / 2] < std::log(1.25));
}

// A prompt of 4096 tokens is all but bound by arithmetic on an A100, one of one token by memory.
TEST_CASE("a prompt has the range of what bounds it") {
  PlanQuestion question;
  question.model = load_model("llama-3-8b");
  question.query.attention = kFused;
  question.rates = device_rates(find_machine("a100-80gb"), Purpose::serve, question.query.dtype);
  const auto range_of = [&](std::int64_t tokens) {
    question.load = {1, tokens};
    const FitReport report = make_fit_report(question, {});
    return report.ttft_range->high_s / *report.result.figures.time.ttft_s - 1;
  };
  CHECK(range_of(4096) == doctest::Approx(question.rates.time_range.compute).epsilon(0.1));
  CHECK(range_of(1) == doctest::Approx(question.rates.time_range.memory).epsilon(0.1));
}

TEST_CASE(
    "rates of serving engines give prompts of llama-bench on A100 little over half their time") {
  const BenchRow& a100 = kRows[9];
  const double ratio = *time_of(a100, 512, Engine::vllm).ttft_s * a100.prompt_tokens_per_s / 512;
  CHECK(ratio < 0.55);
}

TEST_CASE("weights in ggml's blocks have llama.cpp's times without a question of an engine") {
  const BenchRow& blocks = kRows[0];
  CHECK(step_of(blocks, std::nullopt).iteration_s ==
        step_of(blocks, Engine::llama_cpp).iteration_s);
  CHECK(step_of(blocks, Engine::vllm).iteration_s < step_of(blocks, std::nullopt).iteration_s);
  const BenchRow& plain = kRows[3];
  CHECK(step_of(plain, std::nullopt).iteration_s == step_of(plain, Engine::vllm).iteration_s);
}

namespace {

/// The predicted over the measured time of a prompt of 512 tokens, by the engine that ran it.
double prompt_ratio(const BenchRow& row, std::optional<Engine> engine) {
  WorkloadRequest request;
  request.seq_len = 512;
  request.dtype = DType::float16;
  request.weights = row.weights;
  request.attention = row.attention;
  request.logits = Logits::last;
  AnalyzeReport report = make_analyze_report(load_model(row.model), request);
  TimeRequest run;
  run.engine = engine;
  add_prediction(report, find_machine(row.machine), run);
  return report.time->total_s * row.prompt_tokens_per_s / 512;
}

}  // namespace

TEST_CASE("a run of llama.cpp has its times of weights in 16 bits, too") {
  int rows = 0;
  for (const BenchRow& row : kRows) {
    if (row.weights != WeightType::float16) continue;
    ++rows;
    INFO(row.machine);
    const double ratio = prompt_ratio(row, Engine::llama_cpp);
    CHECK(std::abs(std::log(ratio)) < std::log1p(ranges_of(row).compute));
    CHECK(std::abs(std::log(ratio)) < std::abs(std::log(prompt_ratio(row, std::nullopt))));
  }
  CHECK(rows == 6);
}

TEST_CASE("a run of another engine has its times of weights in ggml's blocks, too") {
  const BenchRow& blocks = kRows[9];
  CHECK(prompt_ratio(blocks, Engine::vllm) < prompt_ratio(blocks, Engine::llama_cpp));
  CHECK(prompt_ratio(blocks, std::nullopt) == prompt_ratio(blocks, Engine::llama_cpp));
}

TEST_CASE("training, and GEMMs in 8 bits, keep the rates of other engines") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  PlanQuery query;
  query.weights = WeightType::q4_k_m;
  CHECK(runs_in_llama_cpp(spec, query, std::nullopt));
  query.arithmetic = DType::int8;
  CHECK_FALSE(runs_in_llama_cpp(spec, query, std::nullopt));
  query.arithmetic.reset();
  query.purpose = Purpose::train;
  CHECK_FALSE(runs_in_llama_cpp(spec, query, Engine::llama_cpp));
}

// GeForce RTX 4090: 165.2 TFLOP/s with sums in 32 bits, 660.6 TOP/s in int8; L40S: 362.05 and 733.
TEST_CASE("the fraction of GeForce's peak counts sums in 16 bits, at twice its 16-bit peak") {
  CHECK(efficiency_on("rtx-4090", WeightType::q4_k_m) == doctest::Approx(0.40 * 660.6 / 2 / 165.2));
  CHECK(efficiency_on("l40s", WeightType::q4_k_m) == doctest::Approx(0.40 * 733 / 2 / 362.05));
  CHECK(efficiency_on("rtx-4090", WeightType::float16) == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("mixes of any block have the rates of Q4_K_M, and groups of codes those of int4") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  const MachineProfile machine = find_machine("rtx-4090");
  const auto rates_of = [&](const WeightForm& form) {
    PlanQuery query;
    query.weights = form;
    return engine_rates(machine, spec, query);
  };
  const auto has_rates_of = [&](const WeightForm& form, WeightType known) {
    const DeviceRates rates = rates_of(form);
    const DeviceRates expected = rates_of(known);
    return rates.efficiency.matrix == expected.efficiency.matrix &&
           rates.efficiency.memory == expected.efficiency.memory &&
           rates.kernel_s == expected.kernel_s &&
           rates.efficiency_source == expected.efficiency_source;
  };
  for (int type = static_cast<int>(WeightType::q8_0); type <= static_cast<int>(WeightType::iq4_xs);
       ++type) {
    CAPTURE(type);
    CHECK(has_rates_of(static_cast<WeightType>(type), WeightType::q4_k_m));
  }
  for (const char* const name : {"4bit-1x128-s16-zeros", "int8-row-s16", "fp8-128x128-s32"}) {
    CAPTURE(name);
    CHECK(has_rates_of(group_format_named(name).value(), WeightType::int4));
    CHECK_FALSE(has_rates_of(group_format_named(name).value(), WeightType::q4_k_m));
  }
}

TEST_CASE("analyze and fit predict one time of weights in ggml's blocks") {
  const BenchRow& row = kRows[6];
  Model model = load_model(row.model);
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.dtype = DType::float16;
  request.weights = row.weights;
  request.attention = kFused;
  request.past_len = 256;
  AnalyzeReport report = make_analyze_report(std::move(model), request);
  add_prediction(report, find_machine(row.machine), {});
  BenchRow fused = row;
  fused.attention = kFused;
  const PlanTime step = time_of(fused, 257, std::nullopt);
  CHECK(report.time->total_s == doctest::Approx(step.iteration_s).epsilon(1e-9));
  CHECK(report.time->high_s == doctest::Approx(step.high_s).epsilon(1e-9));
  CHECK(report.time->efficiency->origin == EfficiencyOrigin::published);
  CHECK(report.notes.back() == "weights in ggml's blocks: times are of llama.cpp's kernels");
}

TEST_CASE(
    "a comparison of devices has llama.cpp's times of weights in ggml's blocks, and says so") {
  DeviceQuestion question;
  question.model = load_model("llama-3-8b");
  question.query.attention = kFused;
  question.load = {1, 4096};
  question.machines = {find_machine("rtx-4090")};
  question.weights = {WeightType::q4_k_m};
  const DeviceChoiceReport report = make_device_choice_report(question);
  PlanQuery query = question.query;
  query.weights = WeightType::q4_k_m;
  Planner planner(question.model.spec, query,
                  engine_rates(question.machines.front(), question.model.spec, query));
  CHECK(report.rows.front().fewest.front()->time.iteration_s ==
        planner.evaluate(PlanChoice{}, question.load).time.iteration_s);
  CHECK(report.notes.back().starts_with("weights in ggml's blocks"));
  question.weights = {WeightType::int4};
  CHECK(make_device_choice_report(question).notes.empty());
}

TEST_CASE("a machine that was fitted to its own runs keeps its rates") {
  MachineProfile machine = find_machine("rtx-4090");
  auto& sheet = std::get<DatasheetRates>(machine.rates);
  FittedEfficiency fitted;
  fitted.purpose = Purpose::serve;
  fitted.fractions = {0.5, 0.7, 0.8};
  fitted.runs = 3;
  sheet.fitted.push_back(fitted);
  CHECK_FALSE(llama_cpp_efficiency(sheet, {}));
  CHECK_FALSE(note_on_llama_cpp(sheet, {}));
}

TEST_CASE("a device without results of llama.cpp keeps the rates of serving engines, and says so") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  PlanQuery query;
  query.weights = WeightType::q4_k_m;
  const MachineProfile mi300x = find_machine("mi300x");
  CHECK(engine_rates(mi300x, spec, query).efficiency.matrix ==
        device_rates(mi300x, Purpose::serve, query.dtype).efficiency.matrix);
  CHECK(note_on_engine(mi300x, spec, query, std::nullopt) ==
        "weights in ggml's blocks: no results of llama.cpp are known on cdna devices, so times are "
        "those of serving engines");
  CHECK(note_on_engine(find_machine("rtx-4090"), spec, query, Engine::llama_cpp) == std::nullopt);
}

TEST_CASE("fractions that options give replace llama.cpp's") {
  auto sheet = std::get<DatasheetRates>(find_machine("rtx-4090").rates);
  sheet.given = {0.3, {}, {}};
  const auto reached = llama_cpp_efficiency(sheet, {});
  REQUIRE(reached);
  CHECK(reached->fractions.matrix == 0.3);
  CHECK(reached->fractions.memory == 0.93);
  CHECK(reached->origin == EfficiencyOrigin::given);
}
