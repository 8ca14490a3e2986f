// Files of measured runs, as `calibrate --from` reads them: lines with figures of their own, and
// files of other engines' benchmarks.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/rate_fit.h"
#include "measured_runs.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr const char* kMachine = "h100-80gb";
constexpr const char* kFit = R"("command": ["fit", "llama-3-8b"])";
constexpr const char* kBatch =
    R"("command": ["fit", "llama-3-8b", "--batch", "8", "--seq", "4096"])";
constexpr const char* kServe =
    R"("command": ["serve", "llama-3-8b", "--users", "8", "--requests", "32", "--input", "512", "--output", "64"])";

std::vector<MeasuredRun> runs_of(const std::string& lines) {
  const ScratchFolder folder;
  return cli::read_measured_runs(folder.write("runs.jsonl", lines).string(), kMachine);
}

/// Of a file of tests/data/imports.
std::string import_line(const char* file, const char* command) {
  return fmt::format(R"({{"import": "{}", {}}})", (data_folder() / "imports" / file).string(),
                     command);
}

std::string error_of(const std::string& lines) {
  try {
    (void)runs_of(lines);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

PlanTime predicted(std::int64_t batch, std::int64_t seq_len) {
  const MeasuredRun run = runs_of(fmt::format(R"({{{}, "time_s": 1}})", kFit)).front();
  Planner planner(run.question.model.spec, run.question.query, run.question.rates);
  const Load load{batch, seq_len};
  return planner.evaluate(resolve(run.request, load), load).time;
}

double seconds_of(const MeasuredRun& run) { return run.seconds(run.question.rates); }

/// TTFT and TPOT of a row of nim_latency.csv, whose requests all come at once.
std::vector<MeasuredRun> latencies_of(const CsvRow& row) {
  const double ttft_s = std::stod(row.at("ttft_ms")) / 1e3;
  const double answer_s = std::stod(row.at("latency_ms")) / 1e3 - ttft_s;
  const auto gaps = static_cast<double>(number(row, "output_tokens") - 1);
  return runs_of(fmt::format(
      R"({{"command": ["serve", "{0}", "--count", "{1}", "--tp", "{1}", "--users", "{2}", "--requests", "{2}",)"
      R"( "--input-tokens", "{3}", "--output-tokens", "{4}", "--batched-tokens", "8192", "--admission", "request"],)"
      R"( "ttft_s": {5}, "tpot_s": {6}}})",
      row.at("model"), row.at("devices"), row.at("concurrency"), row.at("input_tokens"),
      row.at("output_tokens"), ttft_s, answer_s / gaps));
}

/// Of the runs, those that the fit's range does not hold.
std::ptrdiff_t outside_of(const RateFit& fit, const std::vector<MeasuredRun>& runs) {
  return std::ranges::count_if(runs, [&](const MeasuredRun& run) {
    const double predicted =
        run.seconds(with_efficiency(run.question.rates, fit.efficiency.fractions));
    const double factor = std::max(predicted / run.time_s, run.time_s / predicted);
    return factor > 1 + fit.efficiency.range;
  });
}

}  // namespace

// Times of tests/data/imports/llama_bench.json: 512 tokens at 200 a second, then 64 tokens of one
// sequence at 20 a second after 288 cached ones on average.
TEST_CASE("a fit command predicts the prompts and steps of a llama-bench file") {
  const std::vector<MeasuredRun> runs = runs_of(import_line("llama_bench.json", kFit));
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].time_s == doctest::Approx(2.56));
  CHECK(runs[0].question.load.seq_len == 512);
  CHECK(seconds_of(runs[0]) == doctest::Approx(*predicted(1, 512).ttft_s));
  CHECK(runs[1].time_s == doctest::Approx(0.05));
  const Load& step = runs[1].question.load;
  CHECK(step.batch_size == 1);
  CHECK(seconds_of(runs[1]) == doctest::Approx(predicted(1, step.seq_len).iteration_s));
}

// tests/data/imports/vllm_serve.json: 10 requests of 512 and 128 tokens, 4 at once; medians.
TEST_CASE("a serve command predicts TTFT, TPOT and latency of vLLM's benchmark") {
  const std::vector<MeasuredRun> runs = runs_of(import_line("vllm_serve.json", kServe));
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].time_s == doctest::Approx(0.1));
  CHECK(runs[1].time_s == doctest::Approx(0.02));
  CHECK(runs[2].time_s == doctest::Approx(2.64));
  // A request's latency is its first token and 127 more.
  CHECK(seconds_of(runs[2]) ==
        doctest::Approx(seconds_of(runs[0]) + 127 * seconds_of(runs[1])).epsilon(0.05));
}

// tests/data/imports/vllm_throughput.json: 16 requests in 8 s.
TEST_CASE("a serve command predicts the time of all requests of vLLM's benchmark") {
  const std::vector<MeasuredRun> runs = runs_of(import_line("vllm_throughput.json", kServe));
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].time_s == doctest::Approx(8));
  const std::vector<MeasuredRun> longer = runs_of(import_line(
      "vllm_throughput.json",
      R"("command": ["serve", "llama-3-8b", "--users", "1", "--input", "512", "--output", "128"])"));
  CHECK(seconds_of(longer[0]) > 1.5 * seconds_of(runs[0]));  // twice the tokens
}

TEST_CASE("a line may state TTFT, TPOT and rates") {
  const PlanTime time = predicted(8, 4096);
  const std::vector<MeasuredRun> runs = runs_of(fmt::format(
      R"({{{}, "ttft_s": 0.25, "tpot_s": 0.02, "tokens_per_s": 400, "memory_bytes": 5e10}})",
      kBatch));
  REQUIRE(runs.size() == 3);
  CHECK(seconds_of(runs[0]) == doctest::Approx(*time.ttft_s));
  CHECK(seconds_of(runs[1]) == doctest::Approx(time.iteration_s));
  CHECK(runs[2].time_s == doctest::Approx(0.02));  // 8 tokens at 400 a second
  CHECK(runs[0].memory_bytes == Integer{50'000'000'000});
  CHECK_FALSE(runs[1].memory_bytes);
  CHECK(runs[1].name != runs[0].name);
  const std::vector<MeasuredRun> served =
      runs_of(fmt::format(R"({{{}, "tokens_per_s": 1000, "output_tokens_per_s": 500}})", kServe));
  REQUIRE(served.size() == 2);
  CHECK(served[0].time_s == doctest::Approx(32 * 576 / 1000.0));  // input and output
  CHECK(served[1].time_s == doctest::Approx(32 * 64 / 500.0));
}

// The machine is one whose memory reaches half of its datasheet, and its arithmetic 40 %.
TEST_CASE("a fit to TTFT and TPOT finds the fractions that both determine") {
  std::vector<MeasuredRun> runs =
      runs_of(fmt::format(R"({{{}, "ttft_s": 1, "tpot_s": 1}})", kBatch));
  for (MeasuredRun& run : runs) {
    DeviceRates rates = run.question.rates;
    rates.efficiency.matrix = 0.4;
    rates.efficiency.memory = 0.5;
    run.time_s = run.seconds(rates);
  }
  const RateFit fit = fit_rates(runs);
  CHECK(fit.efficiency.fractions.matrix == doctest::Approx(0.4).epsilon(0.1));
  CHECK(fit.efficiency.fractions.memory == doctest::Approx(0.5).epsilon(0.1));
}

// Every eighth row of Llama 3 on H100 in 16 bit is given in its turn; the engine's latencies
// scatter more than steps and throughputs, whose range would leave a fourth outside.
TEST_CASE("the range of a fit to one row of NIM's latencies holds nine of ten of the others") {
  std::vector<std::vector<MeasuredRun>> rows;
  for (const CsvRow& row : read_csv(data_folder() / "training" / "nim_latency.csv")) {
    const bool is_asked = row.at("machine") == kMachine && row.at("precision") == "bf16";
    if (is_asked && row.at("output_tokens") == "200") rows.push_back(latencies_of(row));
  }
  REQUIRE(rows.size() == 24);
  std::ptrdiff_t outside = 0;
  std::ptrdiff_t all = 0;
  for (std::size_t given = 0; given < rows.size(); given += 8) {
    const RateFit fit = fit_rates(rows[given]);
    CHECK(fit.efficiency.range < 0.8);
    for (std::size_t other = 0; other < rows.size(); ++other) {
      if (other == given) continue;
      outside += outside_of(fit, rows[other]);
      all += std::ssize(rows[other]);
    }
  }
  MESSAGE(outside, " of ", all, " outside");
  CHECK(10 * outside <= all);
}

TEST_CASE("files and figures that a command does not predict are refused") {
  CHECK(error_of(fmt::format(R"({{{}, "end_to_end_s": 1}})", kFit))
            .ends_with("has an unknown key \"end_to_end_s\""));
  CHECK(error_of(fmt::format(R"({{{}, "name": "a"}})", kFit))
            .ends_with("has none of \"time_s\", \"ttft_s\", \"tpot_s\", \"tokens_per_s\""));
  CHECK(error_of(fmt::format(R"({{"import": "x", "time_s": 1, {}}})", kFit))
            .ends_with("has an unknown key \"time_s\""));
  CHECK(error_of(import_line("../logs/start/vllm_qwen2.5-1.5b.log", kFit))
            .ends_with("is a start-up log, which prints no times"));
  CHECK(error_of(import_line("vllm_latency.json", kFit))
            .ends_with("has no run that a fit command predicts"));
  CHECK(error_of(import_line("llama_bench.json", kServe))
            .ends_with("has single passes, not requests"));
  CHECK(error_of(R"({"command": ["fit", "bert-base"], "ttft_s": 1})")
            .ends_with("\"ttft_s\" is of a decoder that serves"));
  CHECK(error_of(R"({"command": ["serve", "llama-3-8b", "--rate", "2"], "tokens_per_s": 9})")
            .ends_with("requests at given times say how fast they come, not how fast a device is"));
}
