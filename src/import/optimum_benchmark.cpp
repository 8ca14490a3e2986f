// optimum-benchmark: a report with the latency of the prefill, and of the decode, which is all
// further tokens together.
#include <nlohmann/json.hpp>

#include "formats.h"
#include "json_fields.h"

namespace headroom::detail {
namespace {

double latency_of(const JsonFields& part) {
  const JsonFields latency = part.object("latency");
  if (latency.has("unit") && latency.text("unit") != "s") latency.fail("\"unit\" is not \"s\"");
  return latency.has("p50") ? latency.positive("p50") : latency.positive("mean");
}

}  // namespace

bool is_optimum_benchmark(const nlohmann::json& entry) {
  const auto& report = entry.contains("report") ? entry["report"] : entry;
  return report.is_object() && (report.contains("prefill") || report.contains("forward"));
}

std::vector<ComparedRun> from_optimum_benchmark(const nlohmann::json& entry,
                                                const std::string& where) {
  const JsonFields document(entry, where);
  const JsonFields report = document.has("report") ? document.object("report") : document;
  const char* const pass = report.has("prefill") ? "prefill" : "forward";
  const double prefill_s = latency_of(report.object(pass));
  ComparedRun prefill;
  prefill.engine = "optimum-benchmark";
  prefill.identity.phase = MeasuredPhase::prefill;
  prefill.amounts[Quantity::time_s] = prefill_s;
  if (!report.has("decode")) return {prefill};
  // The decode continues the prefill: together they are a generation.
  ComparedRun generation;
  generation.engine = prefill.engine;
  generation.identity.phase = MeasuredPhase::generate;
  generation.amounts[Quantity::ttft_s] = prefill_s;
  generation.amounts[Quantity::time_s] = prefill_s + latency_of(report.object("decode"));
  generation.note = "TTFT is the prefill; the total is prefill and decode";
  return {prefill, generation};
}

}  // namespace headroom::detail
