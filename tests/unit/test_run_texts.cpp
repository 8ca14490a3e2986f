// Texts of measured runs: generations, interrupted runs, stored weights, processes.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/measurement.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "support/data.h"
#include "unit/report_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// A generation of two tokens by gpt2.
Measurement generation_run() {
  Measurement run;
  run.engine = kOwnEngine;
  run.model = load_model("gpt2");
  run.phase = MeasuredPhase::generate;
  WorkloadRequest request;
  request.seq_len = 8;
  run.workload = resolve(request, run.model.spec);
  run.new_tokens = 2;
  run.time = summarize({0.25, 0.2, 0.3});
  run.ttft_s = 0.15;
  run.tpot_s = 0.1;
  run.counted = {124'439'808, 4'000'000'000, 497'759'232, 1 << 20};
  run.memory.arena_peak_bytes = 3 << 20;
  run.operators = {{"decoder.layers.mlp.up", 0.15, 3'000'000'000, 300'000'000},
                   {"decoder.layers.attention.softmax", 0.05, 0, 0},
                   {"decoder.layers.attention.all_reduce", 0, 0, 100}};
  run.context.cpu = "a processor";
  run.context.threads = 1;
  run.context.backend = "eigen";
  return run;
}

/// Rank `number`, in the stage of that number.
RankMeasurement rank_of(std::int64_t number, double time_s, std::vector<WireTraffic> traffic) {
  RankMeasurement rank;
  rank.rank = number;
  rank.stage = number;
  rank.host = "node-a";
  rank.time_s = time_s;
  rank.communication_s = 0.01;
  rank.counted = {1000, 2'000'000'000, 4096, 2048};
  rank.memory.arena_peak_bytes = 1 << 20;
  rank.traffic = std::move(traffic);
  return rank;
}

RanksMeasurement four_ranks() {
  const WireTraffic send{RankGroup::pipeline, CollectiveKind::send, 3, 2048};
  const WireTraffic reduce{RankGroup::tensor, CollectiveKind::all_reduce, 24, 3 << 20};
  return {"pp 4",
          {rank_of(0, 0.2, {send, reduce}), rank_of(1, 0.3, {send}), rank_of(2, 0.1, {}),
           rank_of(3, 0.1, {send})}};
}

nlohmann::json json_of(const Measurement& run) {
  return nlohmann::json::parse(render(run, {.format = Format::json}));
}

}  // namespace

TEST_CASE("a generation prints its new tokens, their times and the tokens that it chose") {
  Measurement run = generation_run();
  run.generated_ids = {{464, 318}, {11, 290}};
  const std::string text = render(run, {});
  CHECK(prints(text, "generate · batch 1 · seq 8 · "));
  CHECK(prints(text, " · 2 new tokens\n"));
  CHECK(prints(text, "250.000 ms ± 50.000 ms (median ± MAD of 3 runs, 200.000 ms to 300.000 ms)"));
  CHECK(prints(text, "tokens            464 318\n"));
  CHECK(prints(text, "tokens            11 290\n"));
  CHECK(prints(text, "KV-cache          1.00 MiB\n"));
  CHECK(json_of(run)["workload"]["new_tokens"] == 2);
  CHECK(json_of(run)["generated_ids"][1][0] == 11);
}

TEST_CASE("one run has no spread, and one new token is no plural") {
  Measurement run = generation_run();
  run.new_tokens = 1;
  run.time = summarize({0.25});
  const std::string text = render(run, {});
  CHECK(prints(text, "time              250.000 ms (1 run)\n"));
  CHECK(prints(text, " · 1 new token\n"));
}

TEST_CASE("operators without products or time have no rate, and shares are of the total") {
  const std::string csv = render(generation_run(), {.format = Format::csv});
  CHECK(prints(csv, "decoder.layers.mlp.up,0.15,75,3000000000,20000000000,2000000000\n"));
  CHECK(prints(csv, "decoder.layers.attention.softmax,0.05,25,,,\n"));
  CHECK(prints(csv, "decoder.layers.attention.all_reduce,0,0,,,\n"));
  Measurement untimed = generation_run();
  for (OperatorMeasurement& one : untimed.operators) one.time_s = 0;
  CHECK(
      prints(render(untimed, {.format = Format::csv}), "decoder.layers.mlp.up,0,,3000000000,,\n"));
}

TEST_CASE("a run that a signal ended says so, and holds the runs before") {
  Measurement run = generation_run();
  CHECK_FALSE(prints(render(run, {}), "interrupted"));
  run.interrupted = true;
  CHECK(prints(render(run, {}), "interrupted  by a signal: these are the runs before\n"));
  CHECK(json_of(run)["interrupted"] == true);
}

TEST_CASE("resident memory needs both readings of the system") {
  Measurement run = generation_run();
  CHECK(prints(render(run, {}), "resident          –\n"));
  run.memory.rss_before_bytes = 10 << 20;
  CHECK(prints(render(run, {}), "resident          –\n"));
  run.memory.rss_peak_bytes = 600 << 20;
  CHECK(prints(render(run, {}), "resident          600.00 MiB peak, 10.00 MiB before the run\n"));
  CHECK(json_of(run)["memory"]["rss_peak_bytes"] == 600 << 20);
}

TEST_CASE("weights that are held as stored list their types and the arithmetic") {
  Measurement run = generation_run();
  run.weight_formats = {{"Q4_K", "Q4_K", 1000, 5 << 20}, {"F16", "F32", 10, 2048}};
  const auto arithmetic = [&](const char* activations) {
    run.activations = activations;
    return render(run, {});
  };
  CHECK(prints(arithmetic("int8"), "held as           Q4_K 5.00 MiB · F32 (from F16) 2.00 KiB\n"));
  CHECK(prints(arithmetic("int8"), "activations int8 in blocks of 32 · integer products"));
  CHECK(prints(arithmetic("bfloat16"), "activations bfloat16 · products with bfloat16 weights"));
  CHECK(prints(arithmetic("float32"), "activations float32 · stored weights decoded to float32"));
  CHECK(json_of(run)["weight_formats"][1] ==
        nlohmann::json{{"stored", "F16"}, {"held", "F32"}, {"parameters", 10}, {"bytes", 2048}});
}

TEST_CASE("the processor's own count stands beside the kernels', or the reason why there is none") {
  Measurement run = generation_run();
  run.retired = RetiredOperations{4.25e9, ""};
  CHECK(prints(render(run, {}),
               "retired           4.250 GFLOP a run by the processor's counters, "
               "4.000 GFLOP of GEMMs counted\n"));
  CHECK(json_of(run)["retired"]["refusal"].is_null());
  run.retired = RetiredOperations{std::nullopt, "no counters"};
  CHECK(prints(render(run, {}), "retired           –\n"));
  CHECK(json_of(run)["retired"]["refusal"] == "no counters");
}

TEST_CASE("a run over processes lists its ranks, the slowest, and the traffic that they share") {
  Measurement run = generation_run();
  run.ranks = four_ranks();
  const std::string text = render(run, {});
  CHECK(prints(text, "pp 4 · 4 processes · operators, memory and counts of rank 0\n"));
  CHECK(prints(text, "rank 1: 300.000 ms, of which 10.000 ms in communication\n"));
  CHECK(prints(text, "pipeline  send        0–1, 3              3"));
  CHECK(prints(text, "tensor    all_reduce  0                  24"));
  CHECK(prints(text, "node-a"));
  CHECK_FALSE(prints(render(run, {.width = 60}), "node-a"));
  const nlohmann::json processes = json_of(run)["processes"];
  CHECK(processes["slowest_rank"] == 1);
  CHECK(processes["ranks"][0]["traffic"].size() == 2);
  CHECK(processes["ranks"][2]["traffic"].empty());
  CHECK(processes["ranks"][0]["rss_peak_bytes"].is_null());
}

TEST_CASE("a run over one process has no traffic to list") {
  Measurement run = generation_run();
  run.ranks = RanksMeasurement{"tp 1", {rank_of(0, 0.2, {})}};
  run.ranks->ranks.front().memory.rss_peak_bytes = 1 << 20;
  CHECK_FALSE(prints(render(run, {}), "Collective"));
  CHECK(json_of(run)["processes"]["ranks"][0]["rss_peak_bytes"] == 1 << 20);
}
