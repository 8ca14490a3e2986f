// Lines of runs that `calibrate --from` refuses, and benchmarks of other engines with passes that a
// command predicts in part.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "headroom/error.h"
#include "measured_runs.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr const char* kGivenMachine = "h100-80gb";
constexpr const char* kFitWords = R"("command": ["fit", "llama-3-8b"])";

std::vector<MeasuredRun> runs_in(const ScratchFolder& folder, const std::string& line) {
  return cli::read_measured_runs(folder.write("runs.jsonl", line).string(), kGivenMachine);
}

/// The message of the error that a line meets, beside a file bench.json with this text.
std::string line_refusal(const std::string& line, const std::string& bench = "") {
  const ScratchFolder folder;
  (void)folder.write("bench.json", bench);
  try {
    (void)runs_in(folder, line);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

std::string command_refusal(const std::string& words) {
  return line_refusal(fmt::format(R"({{"command": {}, "time_s": 1}})", words));
}

/// The runs of a benchmark's file that a command predicts.
std::vector<MeasuredRun> imported(const std::string& bench, const std::string& words) {
  const ScratchFolder folder;
  (void)folder.write("bench.json", bench);
  return runs_in(folder, fmt::format(R"({{"import": "bench.json", "command": {}}})", words));
}

std::string refusal_of_import(const std::string& bench, const std::string& words) {
  return line_refusal(fmt::format(R"({{"import": "bench.json", "command": {}}})", words), bench);
}

}  // namespace

TEST_CASE("a line is an object with a fit or serve command of the machine") {
  CHECK(line_refusal("5").ends_with("is not an object"));
  CHECK(line_refusal(R"({"time_s": 1})").ends_with("has no \"command\""));
  CHECK(command_refusal(R"("fit gpt2")").ends_with("\"command\" is not a list of words"));
  CHECK(command_refusal(R"(["fit", 8])").ends_with("\"command\" is not a list of words"));
  const char* const kNeither = "is neither a fit nor a serve command, which could be predicted";
  CHECK(command_refusal("[]").ends_with(kNeither));
  CHECK(command_refusal(R"(["headroom"])").ends_with(kNeither));
  CHECK(command_refusal(R"(["plan", "gpt2"])").ends_with(kNeither));
  CHECK(command_refusal(R"(["fit", "--help"])").ends_with("\"command\" asks for help"));
  CHECK(command_refusal(R"(["fit", "gpt2", "--machine"])").ends_with("--machine has no value"));
  CHECK(command_refusal(R"(["fit", "gpt2", "--machine", "t4"])")
            .ends_with("the run is of t4, not of h100-80gb"));
  CHECK(command_refusal(R"(["fit", "gpt2", "--machine=t4", "--batch", "1"])")
            .ends_with("the run is of t4, not of h100-80gb"));
}

TEST_CASE("a command may name the program and its machine") {
  const ScratchFolder folder;
  const std::string lines =
      R"({"command": ["headroom", "fit", "gpt2", "--machine", "h100-80gb", "--batch", "2"], "time_s": 1})"
      "\n\n"
      R"({"command": ["fit", "--machine=h100-80gb", "gpt2", "--batch", "3"], "time_s": 1, "name": "three"})";
  const std::vector<MeasuredRun> runs = runs_in(folder, lines);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].question.load.batch_size == 2);
  CHECK(runs[0].name == "gpt2 --batch 2");
  CHECK(runs[1].question.load.batch_size == 3);
  CHECK(runs[1].name == "three");
}

TEST_CASE("figures, names and memory have their types") {
  const auto with = [](const char* more) {
    return line_refusal(fmt::format("{{{}, {}}}", kFitWords, more));
  };
  CHECK(with(R"("time_s": "fast")").ends_with("\"time_s\" is not a number above 0"));
  CHECK(with(R"("time_s": 0)").ends_with("\"time_s\" is not a number above 0"));
  CHECK(with(R"("time_s": 1, "name": 5)").ends_with("\"name\" is not a text"));
  CHECK(with(R"("time_s": 1, "memory_bytes": 1e30)")
            .ends_with("\"memory_bytes\" is more than any device holds"));
  CHECK(with(R"("import": 5)").ends_with("\"import\" is not the name of a file"));
}

TEST_CASE("a plan that breaks a rule is refused in the words of options") {
  const std::string message = command_refusal(R"(["fit", "gpt2", "--count", "5", "--tp", "5"])");
  CHECK(message.ends_with("--tp 5 does not divide 12 attention heads"));
  CHECK(message.find("runs.jsonl:1") == std::string::npos);  // where() has it
}

TEST_CASE("a fit command predicts the whole generation of one sequence") {
  const char* const kBench = R"([{"n_prompt": 64, "n_gen": 16, "avg_ts": 40.0, "avg_ns": 2e9}])";
  const std::vector<MeasuredRun> runs = imported(kBench, R"(["fit", "llama-3-8b"])");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].time_s == doctest::Approx(2));
  CHECK(runs[0].question.load.seq_len == 64);
}

TEST_CASE("a fit command predicts TTFT of one user and the steps of all") {
  const auto bench = [](int users) {
    return fmt::format(
        R"({{"num_prompts": 8, "request_rate": "inf", "max_concurrency": {}, "duration": 8.0, "request_throughput": 1.0,)"
        R"( "completed": 8, "total_input_tokens": 4096, "total_output_tokens": 1024,)"
        R"( "median_ttft_ms": 100.0, "median_tpot_ms": 20.0, "median_e2el_ms": 2640.0}})",
        users);
  };
  const std::vector<MeasuredRun> one = imported(bench(1), R"(["fit", "llama-3-8b"])");
  REQUIRE(one.size() == 2);
  CHECK(one[0].time_s == doctest::Approx(0.02));
  CHECK(one[0].question.load.seq_len == 512 + 64);  // the middle of 128 new tokens
  CHECK(one[1].time_s == doctest::Approx(0.1));
  CHECK(one[1].question.load.seq_len == 512);
  const std::vector<MeasuredRun> four = imported(bench(4), R"(["fit", "llama-3-8b"])");
  REQUIRE(four.size() == 1);
  CHECK(four[0].question.load.batch_size == 4);
  const std::vector<MeasuredRun> served =
      imported(bench(4), R"(["serve", "llama-3-8b", "--rate", "2"])");
  CHECK(served.size() == 3);
}

TEST_CASE("a prompt after cached tokens is no run of a fit command") {
  const char* const kDeep = R"([{"n_prompt": 512, "n_gen": 0, "n_depth": 256, "avg_ts": 100.0}])";
  CHECK(refusal_of_import(kDeep, R"(["fit", "llama-3-8b"])")
            .ends_with("has no run that a fit command predicts"));
}

TEST_CASE("a fit command predicts a pass over several sequences of an encoder only") {
  const char* const kPass = R"({"report": {"prefill": {"latency": {"mean": 0.02}}}})";
  const std::vector<MeasuredRun> runs =
      imported(kPass, R"(["fit", "bert-base", "--batch", "4", "--seq", "128"])");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].time_s == doctest::Approx(0.02));
  CHECK(refusal_of_import(kPass, R"(["fit", "llama-3-8b", "--batch", "4"])")
            .ends_with("4 prompts were prefilled at once, and fit predicts one"));
}

TEST_CASE("a serve command has no targets, and steps only of answers with several tokens") {
  CHECK(command_refusal(R"(["serve", "gpt2", "--users", "1", "--ttft", "1s"])")
            .ends_with("a measured run has no targets"));
  const ScratchFolder folder;
  const std::vector<MeasuredRun> runs = runs_in(
      folder, R"({"command": ["serve", "gpt2", "--users", "1", "--requests", "2", "--input", "8",)"
              R"( "--output", "1"], "tpot_s": 0.1})");
  REQUIRE(runs.size() == 1);
  CHECK_THROWS_WITH_AS((void)runs[0].seconds(runs[0].question.rates),
                       "\"tpot_s\" is of answers with more than one token", Error);
}
