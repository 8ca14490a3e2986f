// Texts of complexity studies that were measured: times, exponents, crossovers, parts.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/complexity.h"
#include "headroom/report.h"
#include "layers.h"
#include "unit/report_text.h"

namespace headroom::test {
namespace {

constexpr double kQuadratic = 1e-9;
constexpr double kLinear = 1e-6;

MachineContext study_machine() {
  MachineContext context;
  context.cpu = "a processor";
  context.threads = 1;
  context.backend = "eigen";
  return context;
}

/// Self-attention of s² and linear attention of s nanoseconds, at lengths from 256 on.
ComplexityReport measured_study(const std::vector<std::int64_t>& lengths) {
  ComplexityReport report =
      make_complexity_report({layer_of(kSelfAttention), layer_of(kLinearAttention)}, lengths);
  report.context = study_machine();
  std::vector<LayerRuns> runs(2);
  for (const std::int64_t n : lengths) {
    const auto x = static_cast<double>(n);
    runs[0].runs.push_back({n, kQuadratic * x * x, kQuadratic * x * x / 2, kQuadratic * x * x, 3});
    runs[1].runs.push_back({n, kLinear * x, kLinear * x / 2, kLinear * x, 3});
    for (LayerRuns& one : runs) {
      one.predicted.push_back({n, 2 * one.runs.back().time_s, one.runs.back().time_s});
    }
  }
  add_measurements(report, runs);
  return report;
}

nlohmann::json study_json(const ComplexityReport& report) {
  return nlohmann::json::parse(render(report, {.format = Format::json}));
}

}  // namespace

TEST_CASE("a measured study lists times, exponents and the measured crossover") {
  const ComplexityReport report = measured_study({256, 512, 1024, 2048, 4096, 8192, 16384, 32768});
  const std::string text = render(report, {});
  CHECK(prints(text, "measured  a processor · 1 thread · eigen\n"));
  CHECK(prints(text, "Measured time, fastest run\n"));
  CHECK(prints(text, "layer, token mixing"));
  CHECK(prints(text, "layer, whole layer"));
  CHECK(prints(text, "    1.049   1.024\n"));
  CHECK(study_json(report)["context"]["cpu"] == "a processor");
}

TEST_CASE("lengths that were not run have no time, and their reason is printed") {
  ComplexityReport report = measured_study({256, 512, 1024});
  report.layers[0].times.runs.pop_back();
  report.layers[0].times.predicted.pop_back();
  report.layers[0].times.skipped.push_back({1024, "its memory exceeds 1 GiB"});
  const std::string text = render(report, {});
  CHECK(prints(text, "not run  layer at s = 1024: its memory exceeds 1 GiB\n"));
  CHECK(prints(text, "1,024      –  1.024\n"));
  const nlohmann::json skipped = study_json(report)["layers"][0]["times"]["skipped"];
  CHECK(skipped[0] == nlohmann::json{{"seq_len", 1024}, {"reason", "its memory exceeds 1 GiB"}});
  const std::string csv = render(report, {.format = Format::csv});
  CHECK(prints(csv, "layer,1024,4294967296,2147483648,41943040,,,\n"));
}

TEST_CASE("two lengths are too few to fit an exponent, and the table says how many it takes") {
  const std::string text = render(measured_study({256, 512}), {});
  CHECK(prints(text, "none  a fit needs 3 such lengths: choose longer ones\n"));
}

TEST_CASE("predicted and measured crossovers stand beside those by FLOPs") {
  ComplexityReport report = measured_study({256, 512, 1024, 2048, 4096, 8192, 16384});
  report.machine = "l4";
  REQUIRE_FALSE(report.crossovers.empty());
  report.crossovers.front().predicted_time = 900;
  for (LayerStudy& study : report.layers) {
    REQUIRE(study.core_exponent.has_value());
    study.core_exponent->predicted_time = 1.5;
    study.core_exponent->measured.half_width_95.reset();
  }
  const std::string text = render(report, {});
  CHECK(prints(text, "predicted  for l4\n"));
  CHECK(prints(text, "layer > layer        65        900     1,000\n"));
  CHECK(prints(text, "1.50"));
  const std::string page = render(report, {.format = Format::html});
  CHECK(prints(page, "<svg"));
}

TEST_CASE("predicted times have a table without a measurement, in lines of 80 columns") {
  std::vector<LayerComplexity> layers;
  for (const char* const name :
       {"layer-self-attention", "layer-linear-attention", "layer-window-attention",
        "layer-multi-head-attention", "layer-rnn"}) {
    layers.push_back(layer_complexity(load_model(name), AttentionImplementation::fused));
  }
  ComplexityReport report = make_complexity_report(std::move(layers), {64, 128});
  report.machine = "l4";
  std::vector<LayerRuns> runs(report.layers.size());
  for (LayerRuns& one : runs) one.predicted = {{64, 0.001, 0}, {128, 0.0025, 0}};
  add_predictions(report, runs);
  const std::string text = render(report, {.width = 80});
  CHECK(prints(text,
               "Predicted time\n  s  layer-self-attention  layer-linear-attention  "
               "layer-window-attention\n"));
  CHECK(
      prints(text, "128                 2.500                   2.500                   2.500\n"));
  CHECK(prints(text, "\nFurther layers\n  s  layer-multi-head-attention  layer-rnn\n"));
  CHECK(prints(text, "128                       2.500      2.500\n"));
  CHECK_FALSE(prints(text, "Measured time"));
  CHECK(prints(render(report, {.format = Format::markdown}), "## Predicted time\n"));
}

TEST_CASE("a study of an encoder-decoder says how long its encoder is, and which state it adds") {
  const ComplexityReport report = make_complexity_report(
      {layer_complexity(load_model("t5-small"), AttentionImplementation::eager)}, {100});
  const std::string text = render(report, {});
  CHECK(prints(text, "workload  one sequence, s = 100 · n = s · float32\n"));
  CHECK(prints(text,
               "t5-small  the encoder reads as many tokens as the decoder; a token of the decoder "
               "adds 24,576 B of state, a token of the encoder 24,576 B\n"));
  const nlohmann::json layer = study_json(report)["layers"][0];
  CHECK(layer["state_bytes_per_token"] == 49152);
  CHECK(layer["state_bytes_per_encoder_token"] == 24576);
  const SharesReport shares =
      make_shares_report(load_model("t5-small"), AttentionImplementation::eager, {128});
  CHECK(prints(render(shares, {}), "Matrix FLOPs by part, one sequence, n = s\n"));
}

TEST_CASE("a layer without token mixing has no exponent of it, and no FLOPs of it in CSV") {
  ComplexityReport report =
      make_complexity_report({layer_of(kFeedForward)}, {1024, 2048, 4096, 8192});
  report.context = study_machine();
  LayerRuns runs;
  for (const std::int64_t n : report.lengths) {
    runs.runs.push_back({n, kLinear * static_cast<double>(n), 0, 1, 3});
  }
  add_measurements(report, {runs});
  const std::string text = render(report, {});
  CHECK_FALSE(prints(text, "token mixing  "));
  CHECK(prints(text, "layer, whole layer"));
  CHECK(prints(render(report, {.format = Format::csv}), "layer,1024,4294967296,,"));
}

TEST_CASE("parts of a model are measured and predicted length by length") {
  SharesReport report =
      make_shares_report(load_model("bert-tiny"), AttentionImplementation::eager, {128, 256});
  Shares<double> times;
  times.values.fill(0.001);
  report.rows[0].measured_s = times;
  report.rows[0].predicted_s = times;
  report.context = study_machine();
  report.skipped = {{256, "a signal ended the study"}};
  const std::string text = render(report, {});
  CHECK(prints(text, "Measured time by part\n"));
  CHECK(prints(text, "128         20.0       20.0  20.0  20.0   20.0  5.000\n"));
  CHECK(prints(text, "256            –          –     –     –      –      –\n"));
  CHECK(prints(text, "not run  s = 256: a signal ended the study\n"));
  const std::string csv = render(report, {.format = Format::csv});
  CHECK(prints(csv, ",0.001,0.001\n"));
  CHECK(prints(csv, "256,head,32768,,\n"));
}

TEST_CASE("a measured generation prints its times, and drops predicted ones on a narrow terminal") {
  GenerationReport report = make_generation_report(load_model("gpt2"), {.new_tokens = {4, 8}});
  report.context = study_machine();
  report.machine = "l4";
  report.lengths_run = {1, 4};
  report.rows[0].time_without_s = 4;
  report.rows[0].time_with_s = 2;
  report.rows[0].predicted_with_s = 1;
  const std::string text = render(report, {});
  CHECK(prints(text, "prefills of 2 lengths were run; times between them are interpolated"));
  CHECK(prints(text, "Predicted without"));
  CHECK(prints(text, "4.000  2.000    2.0\n"));
  CHECK(prints(text, "    –      –      –\n"));
  const std::string narrow = render(report, {.width = 100});
  CHECK_FALSE(prints(narrow, "Predicted without"));
  CHECK(prints(narrow, "Time without"));
  const auto json = nlohmann::json::parse(render(report, {.format = Format::json}));
  CHECK(json["rows"][0]["time_with_s"] == 2);
  CHECK(json["rows"][1]["time_with_s"].is_null());
}

TEST_CASE("the verdict on the order of products follows the crossover") {
  AssociativityReport report = make_associativity_report(load_model("layer-self-attention"),
                                                         AttentionImplementation::eager, {64});
  REQUIRE_FALSE(report.layers.core_crossovers.empty());
  CrossoverRow& row = report.layers.core_crossovers.front();
  const auto verdict = [&] { return render(report, {}).substr(0, 120); };
  CHECK(prints(verdict(), "queries·(keysᵀ·values) costs less from s = "));
  row.flops = 1;
  CHECK(prints(verdict(), "queries·(keysᵀ·values) costs less at any length\n"));
  row.flops.reset();
  CHECK(prints(verdict(), "equal FLOPs\n"));
  row.flops = 1;
  row.above = 1;
  CHECK(prints(verdict(), "(queries·keysᵀ)·values costs less at any length\n"));
}

}  // namespace headroom::test
