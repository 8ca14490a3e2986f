// Texts of comparisons, and the verdicts of operators and of engines' own figures.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "headroom/compare.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "pictures.h"
#include "support/data.h"
#include "unit/report_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// 0.1 s of a model, with two operators.
ComparedRun timed_run(double slowness) {
  ComparedRun run;
  run.identity.model = "model";
  run.amounts[Quantity::matrix_flops] = Integer{1000};
  run.amounts[Quantity::time_s] = 0.1 * slowness;
  run.operator_times = {{"qkv", 0.099 * slowness}, {"norm", 0.001 * slowness}};
  return run;
}

std::string text_of(const Comparison& comparison, const RenderOptions& options = {}) {
  return render(std::span(&comparison, 1), options);
}

nlohmann::json compared_json(const Comparison& comparison) {
  return nlohmann::json::parse(text_of(comparison, {.format = Format::json}));
}

const ComparisonRow& row_named(const Comparison& comparison, const std::string& quantity) {
  const auto found = std::ranges::find(comparison.rows, quantity, &ComparisonRow::quantity);
  REQUIRE(found != comparison.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("operators are judged by their own tolerance, and the short ones not at all") {
  CompareOptions options;
  options.detail = Detail::operators;
  const Comparison slow = compare(timed_run(1), timed_run(1.2), options);
  CHECK(row_named(slow, "time_s:qkv").result == RowResult::pass);  // within 30 %
  CHECK(row_named(slow, "time_s:norm").reason == "less than 2 % of the time");
  options.operator_tolerance = 0.1;
  const Comparison strict = compare(timed_run(1), timed_run(1.2), options);
  CHECK(row_named(strict, "time_s:qkv").result == RowResult::fail);
  CHECK(strict.verdict.starts_with("FAIL — time_s, time_s:qkv; 1 passed"));
  CHECK(prints(text_of(strict), "qkv [ms]         99.000   118.800     +20.0 %    ±10 %  FAIL"));
}

TEST_CASE("an operator that was not predicted, or predicted at no time, is not judged") {
  CompareOptions options;
  options.detail = Detail::operators;
  ComparedRun predicted = timed_run(1);
  predicted.operator_times = {{"norm", 0}};
  const Comparison comparison = compare(predicted, timed_run(1), options);
  CHECK(row_named(comparison, "time_s:qkv").reason == "not predicted");
  CHECK(*row_named(comparison, "time_s:norm").difference == 0);
  CHECK(row_named(comparison, "time_s:norm").result == RowResult::skip);
}

TEST_CASE("a count that was predicted as zero is infinitely far off, which no picture shows") {
  ComparedRun predicted = timed_run(1);
  predicted.amounts[Quantity::matrix_flops] = Integer{0};
  const Comparison comparison = compare(predicted, timed_run(1), {});
  CHECK(row_named(comparison, "matrix_flops").result == RowResult::fail);
  CHECK(compared_json(comparison)["rows"][1]["difference"].is_null());
  const std::string picture = detail::pictures_of(comparison).front();
  CHECK_FALSE(prints(picture, "matrix FLOPs"));
  CHECK(prints(picture, "time [ms]: 0, pass"));
}

TEST_CASE("a comparison without a figure of both sides has no picture") {
  ComparedRun measured;
  measured.identity.model = "model";
  CHECK(detail::pictures_of(compare(timed_run(1), measured, {})).empty());
}

TEST_CASE("a count against a measured double is compared as doubles") {
  ComparedRun measured = timed_run(1);
  measured.amounts[Quantity::matrix_flops] = 1000.0;
  CHECK(compare(timed_run(1), measured, {}).result == RowResult::pass);
  measured.amounts[Quantity::matrix_flops] = 1100.0;
  CHECK(*row_named(compare(timed_run(1), measured, {}), "matrix_flops").difference ==
        doctest::Approx(0.1));
}

TEST_CASE("figures of an engine's log may be rounded, and its own memory is not judged unasked") {
  ComparedRun predicted = timed_run(1);
  ComparedRun measured = timed_run(1);
  predicted.amounts[Quantity::max_concurrency] = 12.344;
  measured.amounts[Quantity::max_concurrency] = 12.34;
  predicted.amounts[Quantity::kv_cache_available_bytes] = Integer{100};
  measured.amounts[Quantity::kv_cache_available_bytes] = Integer{104};
  const Comparison unasked = compare(predicted, measured, {});
  CHECK(row_named(unasked, "max_concurrency").result == RowResult::pass);
  CHECK(prints(text_of(unasked), "  12.34     12.34      <0.1 %     ±1 %  PASS\n"));
  CHECK(row_named(unasked, "kv_cache_available_bytes").reason ==
        "the engine's own memory is modelled");
  CompareOptions asked;
  asked.tolerances[Quantity::kv_cache_available_bytes] =
      default_tolerance(Quantity::kv_cache_available_bytes);
  CHECK(row_named(compare(predicted, measured, asked), "kv_cache_available_bytes").result ==
        RowResult::pass);
  CHECK(default_tolerance(Quantity::max_concurrency) == kPrintedTolerance);
}

TEST_CASE("resident memory of a small model is judged only on request") {
  ComparedRun predicted = timed_run(1);
  ComparedRun measured = timed_run(1);
  predicted.rss_growth_bytes = 1 << 20;
  measured.rss_before_bytes = 1 << 20;
  measured.amounts[Quantity::rss_peak_bytes] = Integer{3 << 20};
  CHECK(row_named(compare(predicted, measured, {}), "rss_peak_bytes").reason ==
        "model too small: libraries dominate");
  CompareOptions asked;
  asked.tolerances[Quantity::rss_peak_bytes] = 0.1;
  CHECK(row_named(compare(predicted, measured, asked), "rss_peak_bytes").result == RowResult::fail);
  predicted.rss_growth_bytes = Integer{1} << 30;
  CHECK(row_named(compare(predicted, measured, {}), "rss_peak_bytes").result == RowResult::fail);
}

TEST_CASE("workloads with images, sound and global tokens are stated where they have some") {
  ComparedRun run = timed_run(1);
  run.identity.visual_tokens = 0;
  run.identity.audio_tokens = 0;
  run.identity.global_tokens = 0;
  const Comparison plain = compare(run, run, {});
  CHECK(plain.workload.empty());
  CHECK_FALSE(compared_json(plain)["workload"].contains("audio_tokens"));
  run.identity.visual_tokens = 256;
  run.identity.audio_tokens = 750;
  run.identity.global_tokens = 2;
  const Comparison full = compare(run, run, {});
  CHECK(full.workload == "256 visual tokens · 750 audio tokens · 2 global tokens");
  CHECK(compared_json(full)["workload"]["visual_tokens"] == 256);
  CHECK(compared_json(full)["workload"]["audio_tokens"] == 750);
  CHECK(compared_json(full)["workload"]["global_tokens"] == 2);
}

TEST_CASE("an interrupted comparison and one on a drifted machine say so") {
  Comparison comparison = compare(timed_run(1), timed_run(1), {});
  comparison.interrupted = true;
  comparison.drift = DriftReport{{1.01, 0.99}, {1.1, 1}};
  const std::string text = text_of(comparison);
  CHECK(prints(text, "interrupted  by a signal: these are the runs before\n"));
  CHECK(prints(text, "GEMM 1.01 → 1.10×, memory 0.99 → 1.00× the calibrated time"));
}

TEST_CASE("ranks are compared by their computation, and the slowest of both sides are named") {
  Comparison comparison = compare(timed_run(1), timed_run(1), {});
  comparison.ranks =
      ComparedRanks{"tp 2", {{0, 0, 0, 0.3, 0.1, 0.2, 0.05}, {1, 0, 1, 0.25, 0, 0.4, 0.3}}};
  const std::string text = text_of(comparison);
  CHECK(prints(text, "Computation and communication of tp 2\n"));
  CHECK(prints(text, "slowest  rank 0; the prediction's is rank 1\n"));
  const nlohmann::json ranks = compared_json(comparison)["processes"];
  CHECK(ranks["slowest_measured_rank"] == 0);
  CHECK(ranks["slowest_predicted_rank"] == 1);
}

TEST_CASE("rows far below and above the prediction are arrows in the colour of their result") {
  ComparedRun measured = timed_run(1);
  measured.amounts[Quantity::time_s] = 1.0;
  measured.amounts[Quantity::matrix_flops] = Integer{10};
  const Comparison comparison = compare(timed_run(1), measured, {});
  CHECK(comparison.verdict ==
        "FAIL — matrix_flops, time_s; 0 passed (0 exact, 0 within tolerance), 0 skipped");
  const std::string picture = detail::pictures_of(comparison).front();
  CHECK(prints(picture, "v12l-9 -6z\" fill=\"#c62828\""));
  CHECK(prints(picture, "v12l9 -6z\" fill=\"#c62828\""));
  CHECK(prints(text_of(comparison), "FAIL"));
}

TEST_CASE("comparisons have no trace, and several in HTML are one page") {
  const Comparison comparison = compare(timed_run(1), timed_run(1), {});
  CHECK(refusal_of([&] {
          (void)text_of(comparison, {.format = Format::trace});
        }).find("have a trace") != std::string::npos);
  const Comparison two[] = {comparison, comparison};
  const std::string page = render(std::span(two), {.format = Format::html});
  CHECK(page.find("<article>") != page.rfind("<article>"));
  const std::string markdown = render(std::span(two), {.format = Format::markdown});
  CHECK(prints(markdown, "| time [ms] | 100.000 | 100.000 |"));
}
