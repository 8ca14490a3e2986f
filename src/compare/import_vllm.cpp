// vLLM bench: latency (one batch, whole generation), throughput (many requests), serve (a server
// under load). Summaries of serve are in milliseconds, everything else is in seconds.
#include "import.h"
#include "json_fields.h"

namespace headroom::detail {
namespace {

constexpr double kMilliseconds = 1e-3;

Figured latency(const JsonFields& fields) {
  Figured figured;
  figured.engine = "vLLM bench latency";
  figured.identity.phase = MeasuredPhase::generate;
  double seconds = fields.positive("avg_latency");
  if (fields.has("percentiles") && fields.object("percentiles").has("50")) {
    seconds = fields.object("percentiles").positive("50");
    figured.note = "the time is the median of the whole generations";
  } else {
    figured.note = "the time is the mean of the whole generations";
  }
  figured.amounts[Quantity::time_s] = seconds;
  return figured;
}

Figured throughput(const JsonFields& fields) {
  Figured figured;
  figured.engine = "vLLM bench throughput";
  figured.identity.phase = MeasuredPhase::generate;
  if (fields.count("num_requests") == 0) fields.fail("no request was served");
  figured.amounts[Quantity::time_s] = fields.positive("elapsed_time");
  figured.note =
      "the time is that of all requests, which the engine batches as it likes: ask with --batch "
      "for as many as ran at once";
  return figured;
}

Figured serve(const JsonFields& fields) {
  Figured figured;
  figured.engine = "vLLM bench serve";
  RunIdentity& identity = figured.identity;
  identity.phase = MeasuredPhase::generate;
  const std::int64_t completed = fields.length("completed");
  if (completed == 0) fields.fail("no request was completed");
  identity.seq_len = fields.length("total_input_tokens") / completed;
  identity.new_tokens = fields.length("total_output_tokens") / completed;
  if (const auto concurrency = fields.length_if("max_concurrency")) {
    identity.batch_size = concurrency;
  }
  const auto store = [&](Quantity quantity, const char* median, const char* mean) {
    const auto value = fields.has(median) ? fields.positive_if(median) : fields.positive_if(mean);
    if (value) figured.amounts[quantity] = *value * kMilliseconds;
  };
  store(Quantity::ttft_s, "median_ttft_ms", "mean_ttft_ms");
  store(Quantity::tpot_s, "median_tpot_ms", "mean_tpot_ms");
  store(Quantity::time_s, "median_e2el_ms", "mean_e2el_ms");
  if (figured.amounts.empty()) fields.fail("has neither TTFT, TPOT nor end-to-end latency");
  figured.note =
      "TPOT is (end to end − TTFT)/(output tokens − 1); waiting in the server's queue is part of "
      "TTFT, and not predicted";
  return figured;
}

}  // namespace

bool is_vllm(const nlohmann::json& entry) {
  return entry.contains("avg_latency") || entry.contains("elapsed_time") ||
         entry.contains("request_throughput");
}

Figured from_vllm(const nlohmann::json& entry, const std::string& where) {
  const JsonFields fields(entry, where);
  if (fields.has("avg_latency")) return latency(fields);
  if (fields.has("elapsed_time")) return throughput(fields);
  return serve(fields);
}

}  // namespace headroom::detail
