// The prediction in the JSON of `headroom analyze` with a machine.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "headroom/compare.h"
#include "json_text.h"
#include "run_json.h"
#include "schema_version.h"
#include "setting_format.h"

namespace headroom {
namespace {

using detail::JsonFields;

bool is_assumed(const JsonFields& time) {
  const std::string basis = time.text("basis");
  if (basis == name_of(TimeBasis::assumed)) return true;
  if (basis == name_of(TimeBasis::modelled)) return false;
  time.fail(fmt::format("\"basis\" is \"{}\", not modelled or assumed", basis));
}

void read_counts(const JsonFields& run, ComparedRun& side) {
  detail::require_counts(run,
                         {"parameters", "matrix_flops", "weight_bytes", "peak_activation_bytes"});
  detail::store_count(run, "parameters", Quantity::parameters, side);
  detail::store_count(run, "matrix_flops", Quantity::matrix_flops, side);
  detail::store_count(run, "weight_bytes", Quantity::weight_bytes, side);
  detail::store_count(run, "kv_cache_bytes", Quantity::kv_cache_bytes, side);
  detail::store_count(run, "peak_activation_bytes", Quantity::peak_activation_bytes, side);
  side.rss_growth_bytes = run.count("rss_growth_bytes");
}

void read_prediction_time(const JsonFields& time, ComparedRun& side) {
  detail::require_token_times(time, side.identity);
  detail::store_time(time, "total_s", Quantity::time_s, side);
  detail::store_time(time, "ttft_s", Quantity::ttft_s, side);
  detail::store_time(time, "tpot_s", Quantity::tpot_s, side);
  side.time_low_s = time.positive_if("low_s");
  side.time_high_s = time.positive_if("high_s");
  side.identity.threads = time.length_if("threads");
  side.time_is_assumed = is_assumed(time);
  detail::read_operators(time, side);
  const double sum = detail::sum_of_operator_times(side);
  detail::require_equal(time, "total_s", sum, sum);
}

/// Of the current version: its files have no other keys, so that these are misspelled or added.
void require_known_keys(const JsonFields& document) {
  if (document.count("schema_version") != kSchemaVersion) return;
  document.require_only({"schema_version", "schema",     "produced_by", "model",      "workload",
                         "verdict",        "convention", "parameters",  "reference",  "flops",
                         "traffic",        "memory",     "generation",  "kv_cache",   "run",
                         "time",           "storage",    "formulas",    "components", "operators",
                         "saved_tensors",  "notes"});
  document.object("run").require_only({"phase", "new_tokens", "parameters", "matrix_flops",
                                       "weight_bytes", "kv_cache_bytes", "peak_activation_bytes",
                                       "rss_growth_bytes"});
  document.object("time").require_only(
      {"machine", "basis", "efficiency", "threads", "total_s", "low_s", "high_s", "bound",
       "decode_bound", "roofline_share", "tokens_per_s", "ttft_s", "tpot_s", "ops"});
}

}  // namespace

ComparedRun import_prediction(std::string_view text, const std::string& where) {
  const nlohmann::json json = detail::parse_json(text, where);
  const JsonFields document = detail::versioned_fields(json, where);
  if (document.has("engine")) {
    document.fail("is a measurement; the first file must be a prediction");
  }
  if (!document.has("run") || !document.has("time")) {
    document.fail(fmt::format("predicts no run: add a {} to the analysis, and write it as JSON",
                              Setting::machine));
  }
  require_known_keys(document);
  const JsonFields run = document.object("run");
  ComparedRun side;
  side.identity = detail::read_identity(document, run);
  detail::require_identity(document, side.identity);
  read_counts(run, side);
  read_prediction_time(document.object("time"), side);
  return side;
}

}  // namespace headroom
