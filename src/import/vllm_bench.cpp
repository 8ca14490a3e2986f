// vLLM bench: latency (one batch, whole generation), throughput (many requests), serve (a server
// under load). Summaries of serve are in milliseconds, all other times in seconds.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats.h"
#include "json_fields.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

constexpr double kMillisecond = 1e-3;

ComparedRun generation_by(const char* engine) {
  ComparedRun run;
  run.engine = engine;
  run.kernels = Engine::vllm;
  run.identity.phase = MeasuredPhase::generate;
  return run;
}

ComparedRun from_latency(const JsonFields& fields) {
  ComparedRun run = generation_by("vLLM bench latency");
  const double mean_s = fields.positive("avg_latency");
  const bool has_median = fields.has("percentiles") && fields.object("percentiles").has("50");
  run.amounts[Quantity::time_s] = has_median ? fields.object("percentiles").positive("50") : mean_s;
  run.note = fmt::format("the time is the {} of whole generations", has_median ? "median" : "mean");
  return run;
}

ComparedRun from_throughput(const JsonFields& fields) {
  ComparedRun run = generation_by("vLLM bench throughput");
  run.identity.requests = fields.length("num_requests");
  if (run.identity.requests == 0) fields.fail("no request was served");
  run.time_of_all_requests = true;
  run.amounts[Quantity::time_s] = fields.positive("elapsed_time");
  run.note = fmt::format(
      "the time is that of all requests, in batches of the engine's choice: predicted as one "
      "batch, unless {} is the number that ran at once",
      Setting::batch_size);
  return run;
}

ComparedRun from_serve(const JsonFields& fields) {
  ComparedRun run = generation_by("vLLM bench serve");
  const std::int64_t completed = fields.length("completed");
  if (completed == 0) fields.fail("no request was completed");
  run.identity.seq_len = fields.length("total_input_tokens") / completed;
  run.identity.new_tokens = fields.length("total_output_tokens") / completed;
  run.identity.requests = completed;
  if (const auto concurrency = fields.length_if("max_concurrency")) {
    run.identity.batch_size = concurrency;
  }
  const auto store = [&](Quantity quantity, const char* median, const char* mean) {
    const auto value = fields.has(median) ? fields.positive_if(median) : fields.positive_if(mean);
    if (value) run.amounts[quantity] = *value * kMillisecond;
  };
  store(Quantity::ttft_s, "median_ttft_ms", "mean_ttft_ms");
  store(Quantity::tpot_s, "median_tpot_ms", "mean_tpot_ms");
  store(Quantity::time_s, "median_e2el_ms", "mean_e2el_ms");
  if (run.amounts.empty()) fields.fail("has neither TTFT, TPOT nor end-to-end latency");
  run.note =
      "TPOT is (end to end − TTFT)/(output tokens − 1); measured TTFT includes queueing, which is "
      "not predicted";
  return run;
}

}  // namespace

bool is_vllm_bench(const nlohmann::json& entry) {
  return entry.contains("avg_latency") || entry.contains("elapsed_time") ||
         entry.contains("request_throughput");
}

ComparedRun from_vllm_bench(const nlohmann::json& entry, const std::string& where) {
  const JsonFields fields(entry, where);
  if (fields.has("avg_latency")) return from_latency(fields);
  if (fields.has("elapsed_time")) return from_throughput(fields);
  return from_serve(fields);
}

}  // namespace headroom::detail
