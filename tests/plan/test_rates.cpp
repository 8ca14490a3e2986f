// One set of rates: every command answers the same question with the same time.
#include <algorithm>
#include <cmath>

#include "gpt_models.h"
#include "headroom/plan.h"
#include "headroom/predict.h"
#include "headroom/report.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kTokens = 4096;
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

WorkloadRequest prompt() {
  WorkloadRequest request;
  request.seq_len = kTokens;
  request.dtype = DType::bfloat16;
  request.attention = AttentionImplementation::fused;
  return request;
}

double analyzed_ttft(const MachineProfile& machine) {
  AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), prompt_request(prompt()));
  TimeRequest time;
  time.phase = MeasuredPhase::generate;
  time.new_tokens = 1;
  add_prediction(report, machine, time);
  return *report.time->ttft_s;
}

double swept_prefill(const MachineProfile& machine) {
  SweepGrid grid;
  grid.seq_len = {kTokens};
  grid.dtype = {DType::bfloat16};
  grid.attention = {AttentionImplementation::fused};
  double seconds = 0;
  sweep(load_model("llama-3-8b").spec, grid, machine, [&](const SweepRow& row) {
    seconds = *row.time_s;
    return true;
  });
  return seconds;
}

double analyzed_prefill(const MachineProfile& machine) {
  AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), prompt());
  add_prediction(report, machine, {});
  return report.time->total_s;
}

PlanTime served(const std::string& model, const MachineProfile& machine, const PlanQuery& query,
                const PlanChoice& choice, const Load& load) {
  Planner planner(load_model(model).spec, query, device_rates(machine, query.purpose, query.dtype));
  return planner.evaluate(choice, load).time;
}

}  // namespace

TEST_CASE("analyze and fit give the same time to the first token") {
  for (const char* const name : {"h100-80gb", "a100-80gb", "b200", "mi300x", "apple-m2-max"}) {
    CAPTURE(std::string(name));
    const MachineProfile machine = find_machine(name);
    const PlanTime fit = served("llama-3-8b", machine, {}, {}, {1, kTokens});
    CHECK(analyzed_ttft(machine) == doctest::Approx(*fit.ttft_s).epsilon(1e-6));
  }
}

TEST_CASE("analyze and sweep give the same time of a prefill") {
  const MachineProfile machine = find_machine("h100-80gb");
  CHECK(swept_prefill(machine) == doctest::Approx(analyzed_prefill(machine)).epsilon(1e-9));
}

TEST_CASE("analyze names the efficiencies that its time rests on") {
  AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), prompt());
  add_prediction(report, find_machine("h100-80gb"), {});
  REQUIRE(report.time->efficiency.has_value());
  const SourcedEfficiency known =
      known_efficiency(Architecture::hopper, Purpose::serve, DType::bfloat16);
  CHECK(report.time->efficiency->fractions.matrix == known.fractions.matrix);
  CHECK(report.time->efficiency->fractions.memory == known.fractions.memory);
  CHECK(report.time->efficiency->origin == EfficiencyOrigin::published);
}

TEST_CASE("efficiencies of a machine's file reach analyze and fit alike") {
  MachineProfile machine = find_machine("h100-80gb");
  const double before = analyzed_ttft(machine);
  std::get<DatasheetRates>(machine.rates).given = {0.3, 0.4, {}};
  const PlanTime fit = served("llama-3-8b", machine, {}, {}, {1, kTokens});
  CHECK(analyzed_ttft(machine) == doctest::Approx(*fit.ttft_s).epsilon(1e-6));
  CHECK(*fit.ttft_s > 1.5 * before);
}

// NVIDIA TensorRT-LLM v1.0, performance overview: float8 weights and cache, all requests queued at
// once. The largest batch that fits runs one prefill per request, then steps at the mean context.
// Hopper's serving efficiencies were fitted to these rows.
TEST_CASE("TensorRT-LLM's offline throughput is met within 9 % in the median") {
  const nlohmann::json runs = read_json(data_folder() / "training/published_serving.json");
  std::vector<double> errors;
  for (const auto& row : runs["rows"]) {
    const std::string model = row["model"];
    const std::int64_t in = row["input_tokens"];
    const std::int64_t out = row["output_tokens"];
    PlanQuery query;
    query.arithmetic = DType::float8;
    query.weights = WeightType::float8;
    query.kv_dtype = DType::float8;
    const MachineProfile machine = find_machine(row["device"].get<std::string>());
    PlanRequest request;
    request.choice.parallel.tensor = row["tp"];
    Planner planner(load_model(model).spec, query,
                    device_rates(machine, query.purpose, query.dtype, query.arithmetic));
    const std::int64_t most =
        std::min(row["max_batch"].get<std::int64_t>(), row["requests"].get<std::int64_t>());
    const std::int64_t batch =
        std::min(most, largest_batch(planner, request, {1, in + out}).value_or(most));
    REQUIRE(batch > 0);
    const PlanTime prompt_time = planner.evaluate(request.choice, {1, in}).time;
    const PlanTime step = planner.evaluate(request.choice, {batch, in + out / 2}).time;
    const auto sequences = static_cast<double>(batch);
    const auto tokens = static_cast<double>(out);
    const double throughput =
        sequences * tokens / (sequences * *prompt_time.ttft_s + tokens * step.iteration_s);
    errors.push_back(std::abs(throughput / row["output_tokens_per_s"].get<double>() - 1));
  }
  CHECK(errors.size() == 20);
  std::ranges::sort(errors);
  CHECK(errors[10] < 0.09);
}

TEST_CASE("the runtime takes memory by device and groups, or as given") {
  const MachineProfile machine = find_machine("h100-80gb");
  const auto runtime_of = [&](std::int64_t ranks, std::optional<Integer> overhead) {
    PlanQuery query;
    query.overhead_bytes = overhead;
    PlanChoice choice;
    choice.parallel.tensor = ranks;
    Planner planner(load_model("llama-3-8b").spec, query,
                    device_rates(machine, query.purpose, query.dtype));
    return planner.evaluate(choice, {1, kTokens}).memory.runtime;
  };
  const RuntimeBytes one = runtime_of(1, {});
  // 81,559 MiB by nvidia-smi and 79.11 GiB in PyTorch's errors.
  CHECK(static_cast<double>(one.driver) == doctest::Approx(551 * 1048576.0));
  // vLLM's non-PyTorch memory on one such device and on two: 1.79 and 3.58 GiB
  // (vllm-project/vllm#10511), its kernels and graphs included.
  CHECK(static_cast<double>(one.context) < 1.79 * kGibibyte);
  CHECK(one.communication == 0);
  const RuntimeBytes two = runtime_of(2, {});
  CHECK(static_cast<double>(two.communication) == doctest::Approx(1.79 * kGibibyte).epsilon(0.001));
  const RuntimeBytes given = runtime_of(2, Integer{1} << 30U);
  CHECK(given.total() == given.driver + (Integer{1} << 30U));
}

// nvidia-smi shows 143,771 MiB on an H200, and 70 billion parameters take
// 131.4 GiB in 16 bit.
TEST_CASE("Llama 3 70B in 16 bit fits one H200, not one H100") {
  const auto fits = [](const char* machine) {
    Planner planner(load_model("llama-3-70b").spec, {},
                    device_rates(find_machine(machine), Purpose::serve, DType::bfloat16));
    return planner.fits(planner.evaluate({}, {1, 2048}));
  };
  CHECK(fits("h200-141gb"));
  CHECK_FALSE(fits("h100-80gb"));
}

// arXiv 2407.21783, Table 4: 43 % MFU on 8,192 devices, to which Hopper's GEMM efficiency was
// fitted, and 41 % on 16,384. 16 stages of eight chunks have a layer each, but for the first and
// the last. FSDP gathers and reduces during the passes.
TEST_CASE("Llama 3 405B trains at the published MFU on H100") {
  const nlohmann::json config =
      read_json(std::filesystem::path(HEADROOM_PRESETS) / "llama-3.1-405b.json").at("config");
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  Planner planner(spec_of(config), query,
                  device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16));
  const auto mfu = [&](std::int64_t replicas) {
    PlanChoice choice;
    choice.parallel.tensor = 8;
    choice.parallel.sequence = SequenceParallel::on;
    choice.parallel.pipeline = 16;
    choice.parallel.interleave = 8;
    choice.parallel.data = replicas;
    choice.zero = Zero::optimizer;
    choice.step.overlap = DataOverlap::on;
    return *planner.evaluate(choice, {2048, 8192}).time.mfu;
  };
  const auto within = [](double published, double part) {
    return doctest::Approx(published).epsilon(part * published / (1 + published));
  };
  CHECK(mfu(64) == within(0.43, 0.04));
  CHECK(mfu(128) == within(0.41, 0.02));
}

}  // namespace headroom::test
