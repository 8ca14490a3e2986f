// Files of other programs' benchmarks: fields that versions of them leave out or state otherwise,
// and values that no benchmark measures.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "headroom/compare.h"
#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

std::vector<ComparedRun> runs_in(const std::string& text) { return import_runs(text, "f.json"); }

ComparedRun run_in(const json& entry) {
  const std::vector<ComparedRun> runs = runs_in(entry.dump());
  REQUIRE(runs.size() == 1);
  return runs.front();
}

std::string import_refusal(const json& entry) {
  return refusal_of([&] { (void)runs_in(entry.dump()); });
}

double seconds_of_run(const ComparedRun& run, Quantity quantity = Quantity::time_s) {
  return std::get<double>(run.amounts.at(quantity));
}

/// llama-bench's prompt of 100 tokens in one second, with these members.
json llama_bench_with(const json& members) {
  json entry = {{"avg_ts", 100.0}, {"n_prompt", 100}, {"n_gen", 0}};
  entry.update(members);
  return entry;
}

/// vLLM's bench serve of ten requests, with these members.
json serve_with(const json& members) {
  json entry = {{"request_throughput", 1.0},
                {"completed", 10},
                {"total_input_tokens", 1000},
                {"total_output_tokens", 100}};
  entry.update(members);
  return entry;
}

/// A measurement of another engine, with these members.
json measured_with(const json& changes) {
  json file = {{"schema_version", 2},
               {"engine", "another"},
               {"model", {{"name", "bert-tiny"}}},
               {"workload", {{"phase", "prefill"}, {"batch_size", 1}, {"seq_len", 128}}},
               {"time", {{"median_s", 0.002}, {"samples_s", {0.002}}}},
               {"counted", json::object()},
               {"memory", json::object()},
               {"ops", json::array()},
               {"context", json::object()}};
  file.merge_patch(changes);
  return file;
}

bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

json predicted_with(const json& changes) {
  AnalyzeReport report = make_analyze_report(load_model("bert-tiny"), {});
  add_prediction(report, find_machine("t4"), {});
  json file = json::parse(render(report, {.format = Format::json}));
  file.merge_patch(changes);
  return file;
}

std::string prediction_refusal(const json& changes) {
  const std::string text = predicted_with(changes).dump();
  return refusal_of([&] { (void)import_prediction(text, "predicted.json"); });
}

}  // namespace

TEST_CASE("llama-bench names the type of the values, which a quantised model has not alone") {
  const auto run = [](const char* type) {
    return run_in(llama_bench_with({{"model_type", type}, {"model_size", 1000}}));
  };
  CHECK(run("llama 1B BF16").identity.dtype == "bfloat16");
  CHECK(run("llama 1B F16").identity.dtype == "float16");
  CHECK(run("llama 1B all F32").identity.dtype == "float32");
  CHECK(run("llama 1B F32").amounts.contains(Quantity::weight_bytes));
  CHECK_FALSE(run("llama 1B Q4_0").identity.dtype);
  CHECK_FALSE(run("llama 1B Q4_0").amounts.contains(Quantity::weight_bytes));
}

TEST_CASE("llama-bench states the attention as a truth or a number, or leaves it to the device") {
  const auto attention = [](const json& stated) {
    return run_in(llama_bench_with({{"flash_attn", stated}})).identity.attention;
  };
  CHECK(attention(true) == "fused");
  CHECK(attention(1) == "fused");
  CHECK(attention(false) == "eager");
  CHECK(attention(0) == "eager");
  CHECK_FALSE(attention(-1));
  CHECK_FALSE(attention(nullptr));
}

TEST_CASE("llama-bench's deviation is a spread, and refused if it is none") {
  CHECK(run_in(llama_bench_with({{"stddev_ns", 1e8}})).time_spread ==
        doctest::Approx(0.1 / 1.4826));
  CHECK_FALSE(run_in(llama_bench_with({{"stddev_ns", nullptr}})).time_spread);
  CHECK_THROWS_AS((void)run_in(llama_bench_with({{"stddev_ns", "0.1"}})), Error);
  CHECK_THROWS_AS((void)run_in(llama_bench_with({{"stddev_ns", -5}})), Error);
}

TEST_CASE("entries that lack a field of llama-bench are of an unknown format") {
  CHECK(contains(import_refusal({{"avg_ts", 1.0}}), "unknown format"));
  CHECK(contains(import_refusal({{"avg_ts", 1.0}, {"n_prompt", 4}}), "unknown format"));
  CHECK(contains(import_refusal({{"report", nullptr}}), "unknown format"));
  CHECK(contains(import_refusal({{"report", {{"decode", 1}}}}), "unknown format"));
}

TEST_CASE("JSON lines may have blank ones between them, and end in carriage returns") {
  const std::string line = llama_bench_with(json::object()).dump();
  CHECK(runs_in(line + "\r\n \t\r\n\n" + line + "\r\n").size() == 2);
  CHECK(contains(refusal_of([&] { (void)runs_in(line + "\n\n{\n"); }), "f.json:3"));
}

TEST_CASE("vLLM's latency is the median where the file has it, else the mean") {
  const auto run = [](const json& members) {
    json entry = {{"avg_latency", 1.5}};
    entry.update(members);
    return run_in(entry);
  };
  CHECK(seconds_of_run(run({{"percentiles", {{"50", 1.25}}}})) == 1.25);
  CHECK(contains(run({{"percentiles", {{"50", 1.25}}}}).note, "the median"));
  for (const json& other : {json::object(), json{{"percentiles", json::object()}},
                            json{{"percentiles", {{"90", 1.75}}}}}) {
    CHECK(seconds_of_run(run(other)) == 1.5);
    CHECK(contains(run(other).note, "the mean"));
  }
  CHECK(contains(import_refusal({{"avg_latency", 1.5}, {"percentiles", {1.25}}}),
                 "f.json/percentiles: is not an object"));
}

TEST_CASE("vLLM's throughput needs requests") {
  CHECK(contains(import_refusal({{"elapsed_time", 8.0}, {"num_requests", 0}}),
                 "no request was served"));
}

TEST_CASE("vLLM's server reports the times that were asked for, as medians or means") {
  const ComparedRun run = run_in(serve_with({{"mean_ttft_ms", 10.0}}));
  CHECK(seconds_of_run(run, Quantity::ttft_s) == doctest::Approx(0.01));
  CHECK_FALSE(run.amounts.contains(Quantity::tpot_s));
  CHECK_FALSE(run.amounts.contains(Quantity::time_s));
  CHECK_FALSE(run.identity.batch_size);
  CHECK(contains(import_refusal(serve_with(json::object())),
                 "has neither TTFT, TPOT nor end-to-end latency"));
  CHECK(contains(import_refusal(serve_with({{"median_ttft_ms", 0}})),
                 "\"median_ttft_ms\" is not a number above zero"));
}

TEST_CASE("optimum-benchmark's reports may stand alone, of an encoder, and without percentiles") {
  const json latency = {{"latency", {{"unit", "s"}, {"mean", 0.5}}}};
  CHECK(seconds_of_run(run_in({{"forward", latency}})) == 0.5);
  CHECK(run_in({{"forward", latency}}).identity.phase == MeasuredPhase::prefill);
  CHECK(seconds_of_run(run_in({{"report", {{"prefill", latency}}}})) == 0.5);
  CHECK(seconds_of_run(run_in({{"prefill", {{"latency", {{"mean", 0.5}, {"p50", 0.25}}}}}})) ==
        0.25);
  CHECK(contains(import_refusal({{"prefill", {{"latency", {{"unit", "ms"}, {"mean", 500}}}}}}),
                 "\"unit\" is not \"s\""));
  CHECK(contains(import_refusal({{"prefill", 3}}), "f.json/prefill: is not an object"));
}

TEST_CASE("a measurement of another engine states its tokens of images, sound and all rows") {
  const auto identity = [](const json& workload) {
    return run_in(measured_with({{"workload", workload}})).identity;
  };
  CHECK(identity({{"images", {{"visual_tokens", 196}}}}).visual_tokens == 196);
  CHECK(identity({{"audio", {{"audio_tokens", 1500}}}}).audio_tokens == 1500);
  CHECK(identity({{"global_tokens", 3}}).global_tokens == 3);
  CHECK(identity(json::object()).visual_tokens == 0);
}

TEST_CASE("members of a measurement of the wrong kind are refused where they stand") {
  CHECK(contains(import_refusal(measured_with({{"ops", 3}})), "\"ops\" is not a list"));
  CHECK(contains(import_refusal(measured_with({{"ops", {7}}})), "f.json/ops/0: is not an object"));
  CHECK(contains(import_refusal(measured_with({{"time", {{"samples_s", 0.002}}}})),
                 "\"samples_s\" holds no run"));
  std::string endless = measured_with(json::object()).dump();
  endless.replace(endless.find("[0.002]"), 7, "[1e999]");
  CHECK(contains(refusal_of([&] { (void)runs_in(endless); }), "f.json"));
  const auto with_load = [](const json& load) {
    return import_refusal(
        measured_with({{"context", {{"logical_cpus", 2}, {"load_average", load}}}}));
  };
  CHECK(with_load(0) == "");
  CHECK(contains(with_load("high"), "\"load_average\" is not a number of at least 0"));
  CHECK(contains(with_load(-1), "\"load_average\" is not a number of at least 0"));
  CHECK(contains(with_load(1e19), "\"load_average\" is above 1e+18"));
}

TEST_CASE("a prediction has a run and its time, whose basis is known") {
  CHECK(prediction_refusal(json::object()) == "");
  CHECK(contains(prediction_refusal({{"time", nullptr}}), "predicts no run"));
  CHECK(contains(prediction_refusal({{"run", nullptr}}), "predicts no run"));
  CHECK(contains(prediction_refusal({{"time", {{"basis", "guessed"}}}}),
                 "\"basis\" is \"guessed\", not modelled or assumed"));
  const std::string modelled = predicted_with({{"time", {{"basis", "modelled"}}}}).dump();
  CHECK_FALSE(import_prediction(modelled, "predicted.json").time_is_assumed);
  CHECK(contains(refusal_of([] { (void)import_prediction("[]", "predicted.json"); }),
                 "is not an object"));
}
