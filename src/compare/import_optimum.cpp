// optimum-benchmark: a report with the latencies of prefill and of decode, which is all of the
// further tokens together.
#include "import.h"
#include "json_fields.h"

namespace headroom::detail {
namespace {

double latency_of(const JsonFields& part) {
  const JsonFields latency = part.object("latency");
  if (latency.has("unit") && latency.text("unit") != "s") latency.fail("\"unit\" is not \"s\"");
  return latency.has("p50") ? latency.positive("p50") : latency.positive("mean");
}

}  // namespace

bool is_optimum(const nlohmann::json& entry) {
  const auto& report = entry.contains("report") ? entry["report"] : entry;
  return report.is_object() && (report.contains("prefill") || report.contains("forward"));
}

std::vector<Figured> from_optimum(const nlohmann::json& entry, const std::string& where) {
  const JsonFields document(entry, where);
  const JsonFields report = document.has("report") ? document.object("report") : document;
  Figured prefill;
  prefill.engine = "optimum-benchmark";
  prefill.identity.phase = MeasuredPhase::prefill;
  const char* const pass = report.has("prefill") ? "prefill" : "forward";
  prefill.amounts[Quantity::time_s] = latency_of(report.object(pass));
  std::vector<Figured> runs{prefill};
  if (!report.has("decode")) return runs;
  // Decoding goes on from the prompt: together they are a generation.
  Figured whole;
  whole.engine = prefill.engine;
  whole.identity.phase = MeasuredPhase::generate;
  const double first = latency_of(report.object(pass));
  whole.amounts[Quantity::ttft_s] = first;
  whole.amounts[Quantity::time_s] = first + latency_of(report.object("decode"));
  whole.note = "TTFT is its prefill; the time is its prefill and decode";
  runs.push_back(std::move(whole));
  return runs;
}

}  // namespace headroom::detail
