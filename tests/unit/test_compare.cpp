// Verdicts of comparisons, refused files, and other engines' formats.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headroom/compare.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;

namespace {

ComparedRun run_of(double seconds, Integer flops) {
  ComparedRun run;
  run.identity.model = "model";
  run.identity.batch_size = 1;
  run.amounts[Quantity::matrix_flops] = flops;
  run.amounts[Quantity::time_s] = seconds;
  return run;
}

const ComparisonRow& row(const Comparison& comparison, Quantity quantity) {
  return *std::ranges::find(comparison.rows, name_of(quantity), &ComparisonRow::quantity);
}

AnalyzeReport predicted_report() {
  AnalyzeReport report = make_analyze_report(load_model("bert-tiny"), {});
  add_prediction(report, find_machine("t4"), {});
  return report;
}

std::string predicted_json() { return render(predicted_report(), {.format = Format::json}); }

nlohmann::json measured_json() {
  nlohmann::json json;
  json["schema_version"] = 1;
  json["engine"] = "another";
  json["model"] = {{"name", "bert-tiny"}};
  json["phase"] = "prefill";
  json["workload"] = {{"batch_size", 1}, {"seq_len", 128}, {"past_len", 0}};
  json["time"] = {{"median_s", 0.002}, {"mad_s", 0.0001}, {"samples_s", {0.0019, 0.002, 0.0021}}};
  json["counted"] = {{"matrix_flops", 117473280}};
  json["memory"] = nlohmann::json::object();
  json["ops"] = nlohmann::json::array();
  json["context"] = nlohmann::json::object();
  return json;
}

std::string measured_refusal(const nlohmann::json& json) {
  return test::refusal_of([&] { (void)import_measurement(json.dump(), "measured.json"); });
}

std::vector<ComparedRun> imported(const std::string& file) {
  return import_runs(test::read_file(test::data_folder() / "imports" / file), file);
}

double seconds(const ComparedRun& run, Quantity quantity) {
  return std::get<double>(run.amounts.at(quantity));
}

}  // namespace

TEST_CASE("a count must be equal, a time within its tolerance") {
  const Comparison good = compare(run_of(1, 100), run_of(1.1, 100), {});
  CHECK(good.result == RowResult::pass);
  CHECK(*row(good, Quantity::time_s).difference == doctest::Approx(0.1));
  const Comparison off_by_one = compare(run_of(1, 100), run_of(1, 101), {});
  CHECK(off_by_one.result == RowResult::fail);
  CHECK(row(off_by_one, Quantity::matrix_flops).result == RowResult::fail);
  CHECK(off_by_one.verdict.starts_with("FAIL — matrix_flops"));
  const Comparison slow = compare(run_of(1, 100), run_of(1.2, 100), {});
  CHECK(row(slow, Quantity::time_s).result == RowResult::fail);
  CompareOptions wide;
  wide.tolerances[Quantity::time_s] = 0.25;
  CHECK(compare(run_of(1, 100), run_of(1.2, 100), wide).result == RowResult::pass);
}

TEST_CASE("counts that differ by one fail however large they are") {
  // Beyond 2^53, a double cannot tell neighbours apart.
  const Integer large = Integer{1} << 60;
  const Comparison comparison = compare(run_of(1, large), run_of(1, large + 1), {});
  CHECK(row(comparison, Quantity::matrix_flops).result == RowResult::fail);
  CHECK(compare(run_of(1, large), run_of(1, large), {}).result == RowResult::pass);
}

TEST_CASE("runs with other logits are not compared") {
  ComparedRun predicted = run_of(1, 100);
  ComparedRun measured = run_of(1, 100);
  predicted.identity.logits = "last";
  CHECK(compare(predicted, measured, {}).result == RowResult::pass);  // an engine that states none
  measured.identity.logits = "all";
  const std::string refusal = test::refusal_of([&] { (void)compare(predicted, measured, {}); });
  CHECK(refusal.find("logits differs: last predicted, all measured") != std::string::npos);
}

TEST_CASE("a count that headroom's own measurement lacks fails") {
  ComparedRun measured = run_of(1, 100);
  measured.engine = kOwnEngine;
  measured.amounts.erase(Quantity::matrix_flops);
  CHECK(row(compare(run_of(1, 100), measured, {}), Quantity::matrix_flops).result ==
        RowResult::fail);
  measured.engine = "another";
  CHECK(row(compare(run_of(1, 100), measured, {}), Quantity::matrix_flops).result ==
        RowResult::skip);
}

TEST_CASE("a quantity that one side lacks is skipped") {
  const Comparison comparison = compare(run_of(1, 100), run_of(1, 100), {});
  CHECK(row(comparison, Quantity::kv_cache_bytes).result == RowResult::skip);
  CHECK(!row(comparison, Quantity::kv_cache_bytes).tolerance);
  CHECK(compare(ComparedRun{}, ComparedRun{}, {}).result == RowResult::skip);
}

TEST_CASE("noisy runs and assumed rates give no verdict on time") {
  ComparedRun noisy = run_of(2, 100);
  noisy.time_spread = 0.2;
  CHECK(row(compare(run_of(1, 100), noisy, {}), Quantity::time_s).result == RowResult::skip);
  ComparedRun assumed = run_of(1, 100);
  assumed.time_is_assumed = true;
  CHECK(row(compare(assumed, run_of(2, 100), {}), Quantity::time_s).result == RowResult::skip);
  CHECK(compare(assumed, run_of(2, 100), {}).verdict.ends_with("time not judged"));
  CompareOptions asked;
  asked.tolerances[Quantity::time_s] = 0.1;
  const Comparison judged = compare(assumed, run_of(2, 100), asked);
  CHECK(row(judged, Quantity::time_s).result == RowResult::fail);
  CHECK(judged.verdict.find("not judged") == std::string::npos);
}

TEST_CASE("a reason that several rows share is one line below the table") {
  ComparedRun predicted = run_of(1, 100);
  ComparedRun measured = run_of(1, 100);
  predicted.amounts[Quantity::weight_bytes] = Integer{4};
  predicted.amounts[Quantity::kv_cache_bytes] = Integer{4};
  const auto text = [&] {
    const Comparison comparison = compare(predicted, measured, {});
    return render(std::span(&comparison, 1), {});
  };
  const auto has = [](const std::string& of, const char* words) {
    return of.find(words) != std::string::npos;
  };
  const auto skipped = compare(predicted, measured, {});
  const std::string& reason = row(skipped, Quantity::kv_cache_bytes).reason;
  REQUIRE_FALSE(reason.empty());
  CHECK(has(text(), ("2 rows: " + reason).c_str()));
  CHECK_FALSE(has(text(), ("SKIP: " + reason).c_str()));
  measured.amounts[Quantity::weight_bytes] = Integer{4};
  CHECK(has(text(), ("SKIP: " + reason).c_str()));
}

TEST_CASE("a long reason stands below the table, under the name of its row") {
  ComparedRun assumed = run_of(1, 100);
  assumed.time_is_assumed = true;
  const Comparison comparison = compare(assumed, run_of(2, 100), {});
  const std::string text = render(std::span(&comparison, 1), {});
  CHECK(text.find("skipped  time: device rates are assumed\n") != std::string::npos);
  CHECK(text.find("SKIP\n") != std::string::npos);
}

TEST_CASE("runs of different models or workloads are refused") {
  ComparedRun other = run_of(1, 100);
  other.identity.model = "another";
  CHECK(test::refusal_of([&] { (void)compare(run_of(1, 100), other, {}); }).find("model") !=
        std::string::npos);
  other = run_of(1, 100);
  other.identity.batch_size = 2;
  CHECK(test::refusal_of([&] { (void)compare(run_of(1, 100), other, {}); }).find("batch") !=
        std::string::npos);
  ComparedRun one_image = run_of(1, 100);
  one_image.identity.compared_images = 1;
  other = one_image;
  other.identity.compared_images = 3;
  CHECK(test::refusal_of([&] { (void)compare(one_image, other, {}); }).find("images") !=
        std::string::npos);
}

TEST_CASE("reports of analyze and measure are comparable if their sizes are equal") {
  const ComparedRun predicted = import_prediction(predicted_json(), "predicted.json");
  const ComparedRun measured = import_measurement(measured_json().dump(), "measured.json");
  const Comparison comparison = compare(predicted, measured, {});
  CHECK(row(comparison, Quantity::matrix_flops).result == RowResult::pass);
  nlohmann::json longer = measured_json();
  longer["workload"]["seq_len"] = 64;
  const ComparedRun other = import_measurement(longer.dump(), "measured.json");
  CHECK(test::refusal_of([&] { (void)compare(predicted, other, {}); }).find("seq") !=
        std::string::npos);
}

TEST_CASE("swapped, truncated and contradictory files are refused") {
  CHECK(test::refusal_of([] { (void)import_measurement(predicted_json(), "a.json"); }) != "");
  CHECK(test::refusal_of([] {
          (void)import_prediction(measured_json().dump(), "b.json");
        }).find("is a measurement") != std::string::npos);
  nlohmann::json json = measured_json();
  json["time"]["samples_s"] = nlohmann::json::array();
  CHECK(measured_refusal(json).find("holds no run") != std::string::npos);
  json = measured_json();
  json["time"]["samples_s"][1] = nullptr;
  CHECK(measured_refusal(json).find("not a time above zero") != std::string::npos);
  json = measured_json();
  json["time"]["median_s"] = 0.00195;
  CHECK(measured_refusal(json).find("median") != std::string::npos);
  json = measured_json();
  json["time"]["samples_s"][0] = -1;
  CHECK(measured_refusal(json).find("not a time above zero") != std::string::npos);
  json = measured_json();
  json["engine"] = "headroom";
  CHECK(measured_refusal(json).find("operators") != std::string::npos);
  json = measured_json();
  json.erase("phase");
  CHECK(measured_refusal(json).find("phase") != std::string::npos);
}

TEST_CASE("a measurement states its phase in the workload, or beside it as in version 1") {
  nlohmann::json json = measured_json();
  const RunIdentity before = import_measurement(json.dump(), "measured.json").identity;
  json["schema_version"] = 2;
  json["workload"]["phase"] = json["phase"];
  json["workload"]["new_tokens"] = nullptr;
  json.erase("phase");
  RunIdentity now = import_measurement(json.dump(), "measured.json").identity;
  CHECK(now.phase == before.phase);
  CHECK(now.phase == MeasuredPhase::prefill);
  json["workload"]["new_tokens"] = 5;
  now = import_measurement(json.dump(), "measured.json").identity;
  CHECK(now.phase == MeasuredPhase::generate);
  CHECK(now.new_tokens == 5);
  json["schema_version"] = 3;
  CHECK(measured_refusal(json).find("schema_version") != std::string::npos);
}

TEST_CASE("drift of the machine is removed from spread and prediction") {
  TimePrediction prediction;
  prediction.total_s = 3;
  prediction.tokens_per_s = 1;
  prediction.operators = {{"products", 1, 1, 1, Bound::compute, {}, 1, 1},
                          {"streams", 2, 2, 2, Bound::memory, {}, 0, 1}};
  // Every sample is 1·compute + 2·memory seconds: drift explains all of the spread.
  const Drift drifts[] = {{1, 1}, {2, 1}, {2, 1.5}};
  const double samples[] = {3, 4, 5};
  CHECK(spread_without_drift(prediction, samples, drifts) == doctest::Approx(0));
  const TimePrediction typical = corrected_for_drift(prediction, samples, drifts);
  CHECK(typical.total_s == doctest::Approx(4));
  CHECK(typical.operators[0].time_s == doctest::Approx(2));
  // Runs at half the predicted speed do not change the prediction.
  const double slow[] = {6, 8, 10};
  CHECK(corrected_for_drift(prediction, slow, drifts).total_s == doctest::Approx(4));
  // One of three runs is 10 % longer: the MAD stays 0.
  const double uneven[] = {3, 4.4, 5};
  CHECK(spread_without_drift(prediction, uneven, drifts) == doctest::Approx(0));
  const double scattered[] = {2.7, 4, 5.5};
  CHECK(spread_without_drift(prediction, scattered, drifts) == doctest::Approx(0.1));
}

TEST_CASE("memory drift scales the uncached part of an operator's time") {
  TimePrediction prediction;
  prediction.operators = {{"streams", 2, 2, 2, Bound::memory, {}, 0.5, 1}};
  CHECK(total_with(prediction, {1, 1}) == doctest::Approx(2));
  CHECK(total_with(prediction, {1, 0.5}) == doctest::Approx(0.5 + 1.5 * 0.5));
  CHECK(total_with(prediction, {3, 1}) == doctest::Approx(3 * 0.5 + 1.5));
}

TEST_CASE("several comparisons are a list in JSON and one table in CSV") {
  const Comparison one = compare(run_of(1, 100), run_of(1.1, 100), {});
  const std::vector<Comparison> two{one, one};
  const auto json = nlohmann::json::parse(render(two, {.format = Format::json}));
  REQUIRE(json.is_array());
  CHECK(json.size() == 2);
  const auto alone = nlohmann::json::parse(render(std::span(&one, 1), {.format = Format::json}));
  CHECK(alone == json[0]);
  const std::string csv = render(two, {.format = Format::csv});
  CHECK(csv.starts_with("model,workload,threads,quantity,predicted,measured,difference,"));
  CHECK(csv.find("model,batch 1,,time_s,1,1.1,0.10000000000000009,0.15,pass,\n") !=
        std::string::npos);
  CHECK(csv.find("matrix_flops,100,100,0,0,pass,") != std::string::npos);
}

TEST_CASE("rows of runs with other threads differ in CSV") {
  ComparedRun predicted = run_of(1, 100);
  predicted.identity.threads = 2;
  const Comparison comparison = compare(predicted, run_of(1, 100), {});
  const std::string csv = render(std::span(&comparison, 1), {.format = Format::csv});
  CHECK(csv.find("\nmodel,batch 1,2,time_s,1,1,0,0.15,pass,\n") != std::string::npos);
}

TEST_CASE("quantities of start-up logs are no rows of other comparisons") {
  const Comparison comparison = compare(run_of(1, 100), run_of(1, 100), {});
  for (const QuantityInfo& quantity : quantities()) {
    CAPTURE(quantity.name);
    const bool of_logs =
        quantity.kind == QuantityKind::printed || quantity.kind == QuantityKind::modelled;
    const bool found = std::ranges::find(comparison.rows, quantity.name,
                                         &ComparisonRow::quantity) != comparison.rows.end();
    CHECK(found != of_logs);
  }
}

TEST_CASE("the type that weights are converted to is stated, and not compared") {
  ComparedRun predicted = run_of(1, 100);
  predicted.identity.weights = "int4";
  ComparedRun measured = run_of(1, 100);
  measured.identity.weights = "stored";  // in files of that type
  const Comparison comparison = compare(predicted, measured, {});
  CHECK(comparison.workload == "batch 1 · int4 weights");
  const auto json = nlohmann::json::parse(
      render(std::span(&comparison, 1), RenderOptions{.format = Format::json}));
  CHECK(json["workload"]["weights"] == "int4");
  CHECK(compare(measured, measured, {}).workload == "batch 1");
  CHECK(*predicted_run(predicted_report()).identity.weights == "stored");
}

TEST_CASE("a generation of one token says so") {
  ComparedRun run = run_of(1, 100);
  run.identity.new_tokens = 1;
  CHECK(compare(run, run, {}).workload == "batch 1 · 1 new token");
  run.identity.new_tokens = 2;
  CHECK(compare(run, run, {}).workload == "batch 1 · 2 new tokens");
}

TEST_CASE("another type of activations is refused with the type to predict in") {
  ComparedRun predicted = run_of(1, 100);
  predicted.identity.dtype = "bfloat16";
  ComparedRun measured = run_of(1, 100);
  measured.identity.dtype = "float32";
  try {
    (void)compare(predicted, measured, {});
    FAIL("compares runs of different types");
  } catch (const Error& error) {
    CHECK(error.hint().find("in float32") != std::string::npos);
  }
}

TEST_CASE("llama-bench tests of prompt, decode and both are imported") {
  const std::vector<ComparedRun> runs = imported("llama_bench.json");
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].identity.phase == MeasuredPhase::prefill);
  CHECK(runs[0].identity.seq_len == 512);
  CHECK(runs[0].identity.dtype == "float16");
  CHECK(runs[0].kernels == Engine::llama_cpp);
  CHECK(runs[0].identity.attention == "eager");
  CHECK(!runs[1].identity.attention);  // not stated
  CHECK(seconds(runs[0], Quantity::time_s) == doctest::Approx(512 / 200.0));
  CHECK(std::get<Integer>(runs[0].amounts.at(Quantity::parameters)) == 1100048384);
  CHECK(runs[1].identity.phase == MeasuredPhase::decode);
  CHECK(runs[1].identity.past_len == 256 + 64);
  CHECK(seconds(runs[1], Quantity::time_s) == doctest::Approx(0.05));
  const std::vector<ComparedRun> lines = imported("llama_bench.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].identity.phase == MeasuredPhase::generate);
  CHECK(lines[0].identity.new_tokens == 17);
  CHECK(seconds(lines[1], Quantity::time_s) == doctest::Approx(0.1));
}

TEST_CASE("vLLM bench latency, throughput and serve are imported in their units") {
  CHECK(seconds(imported("vllm_latency.json").at(0), Quantity::time_s) == 1.45);
  CHECK(seconds(imported("vllm_throughput.json").at(0), Quantity::time_s) == 8);
  const ComparedRun serve = imported("vllm_serve.json").at(0);
  CHECK(serve.kernels == Engine::vllm);
  CHECK(serve.identity.seq_len == 512);
  CHECK(serve.identity.new_tokens == 128);
  CHECK(serve.identity.batch_size == 4);
  CHECK(seconds(serve, Quantity::ttft_s) == doctest::Approx(0.1));
  CHECK(seconds(serve, Quantity::tpot_s) == doctest::Approx(0.02));
  // (end to end − TTFT)/(output tokens − 1), as its summary defines it
  CHECK(seconds(serve, Quantity::time_s) ==
        doctest::Approx(seconds(serve, Quantity::ttft_s) + 127 * seconds(serve, Quantity::tpot_s)));
}

TEST_CASE("optimum-benchmark's prefill and decode are imported") {
  const std::vector<ComparedRun> runs = imported("optimum.json");
  REQUIRE(runs.size() == 2);
  CHECK(seconds(runs[0], Quantity::time_s) == 0.0205);
  CHECK(seconds(runs[1], Quantity::ttft_s) == 0.0205);
  CHECK(seconds(runs[1], Quantity::time_s) == doctest::Approx(0.6205));
}

TEST_CASE("a file of an unknown format is refused") {
  const auto import = [](const char* text) {
    return test::refusal_of([&] { (void)import_runs(text, "file.json"); });
  };
  CHECK(import("{}").find("unknown format") != std::string::npos);
  CHECK(import("[]").find("holds no run") != std::string::npos);
  CHECK(import("[1]").find("not an object") != std::string::npos);
  CHECK(import("{").find("file.json") != std::string::npos);
  CHECK(import(R"({"avg_ts": 1, "n_prompt": 9223372036854775807, "n_gen": 1})").find("n_prompt") !=
        std::string::npos);
  CHECK(import(R"({"avg_ts": 1, "n_prompt": 0, "n_gen": 0})").find("neither") != std::string::npos);
  CHECK(import(R"({"avg_ts": -1, "n_prompt": 1, "n_gen": 0})").find("avg_ts") != std::string::npos);
  for (const char* const number : {"1e300", "1e-300"}) {
    const std::string text = fmt::format(R"({{"avg_ts": {}, "n_prompt": 1, "n_gen": 0}})", number);
    CHECK(import(text.c_str()).find("avg_ts") != std::string::npos);
  }
  CHECK(import(R"({"avg_ts": 10, "n_prompt": 10, "n_gen": 0, "avg_ns": 1})").find("contradict") !=
        std::string::npos);
  CHECK(import(R"({"request_throughput": 1, "completed": 0})").find("completed") !=
        std::string::npos);
}

TEST_CASE("times of a machine that other programs used are not judged, whatever is asked for") {
  nlohmann::json json = measured_json();
  json["context"] = {{"logical_cpus", 2}, {"threads", 2}, {"load_average", 25.0}};
  const ComparedRun predicted = import_prediction(predicted_json(), "predicted.json");
  CompareOptions asked;
  asked.tolerances[Quantity::time_s] = 1e-9;
  const auto time_row = [&] {
    const ComparedRun measured = import_measurement(json.dump(), "measured.json");
    return row(compare(predicted, measured, asked), Quantity::time_s);
  };
  CHECK(time_row().result == RowResult::skip);
  CHECK(time_row().reason == "the load average was 25.0 on 2 processors");
  // The run's own share of the load average is known.
  json["context"]["other_programs_cpus"] = 0.02;
  CHECK(time_row().result == RowResult::fail);
  json["context"]["other_programs_cpus"] = 1.5;
  CHECK(time_row().reason == "other programs used 1.5 of 2 processors");
}

TEST_CASE("a machine that is not as fast as at its calibration judges no time") {
  CHECK(disturbance_of(DriftReport{{1, 1}, {1.2, 1.1}}).empty());
  CHECK(disturbance_of(DriftReport{{1.9, 1}, {1.9, 1}}).empty());
  CHECK_FALSE(disturbance_of(DriftReport{{2.1, 1}, {2.1, 1}}).empty());
  CHECK_FALSE(disturbance_of(DriftReport{{1, 1}, {1, 1.4}}).empty());
}
