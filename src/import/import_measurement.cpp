// The measurement in JSON as `headroom measure` writes it; people write the same for other engines.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats.h"
#include "headroom/compare.h"
#include "json_text.h"
#include "run_json.h"
#include "schema_version.h"

namespace headroom {
namespace {

using detail::JsonFields;

TimeStatistics statistics_of(const JsonFields& time) {
  const nlohmann::json& samples = time.at("samples_s");
  if (!samples.is_array() || samples.empty()) time.fail("\"samples_s\" holds no run");
  std::vector<double> values;
  for (const nlohmann::json& sample : samples) {
    const bool good = sample.is_number() && std::isfinite(sample.get<double>()) && sample > 0;
    if (!good) time.fail("\"samples_s\" has a value that is not a time above zero");
    values.push_back(sample.get<double>());
  }
  return summarize(std::move(values));
}

/// Median and spread of the times. Throws Error{invalid_input} if they contradict the samples.
void read_measured_time(const JsonFields& time, ComparedRun& run) {
  const TimeStatistics statistics = statistics_of(time);
  const double median = statistics.median_s;
  detail::require_equal(time, "median_s", median, median);
  const std::pair<const char*, double> others[] = {
      {"mad_s", statistics.mad_s}, {"min_s", statistics.min_s}, {"max_s", statistics.max_s}};
  for (const auto& [key, expected] : others) {
    if (time.has(key)) detail::require_equal(time, key, expected, median);
  }
  run.amounts[Quantity::time_s] = median;
  run.time_spread = statistics.mad_s / median;
}

/// Why the times of a run in this context are not the machine's own; empty if they are, or if the
/// file does not tell.
std::string disturbance_in(const JsonFields& context) {
  MachineContext machine;
  machine.logical_cpus = static_cast<int>(context.length_if("logical_cpus").value_or(0));
  if (machine.logical_cpus == 0) return {};
  machine.load_average = context.amount_if("load_average").value_or(0);
  machine.other_programs_cpus = context.amount_if("other_programs_cpus");
  return disturbance_of(machine);
}

/// Of the current version: its files have no other keys, so that these are misspelled or added.
void require_own_keys(const JsonFields& document) {
  if (document.count("schema_version") != kSchemaVersion) return;
  document.require_only({"schema_version", "schema",         "produced_by", "engine",
                         "model",          "workload",       "time",        "ttft_s",
                         "tpot_s",         "generated_ids",  "counted",     "memory",
                         "processes",      "weight_formats", "activations", "ops",
                         "context",        "warnings",       "interrupted", "retired"});
  document.object("time").require_only({"median_s", "mad_s", "min_s", "max_s", "samples_s"});
  document.object("counted").require_only(
      {"parameters", "matrix_flops", "weight_bytes", "kv_cache_bytes"});
  document.object("memory").require_only(
      {"arena_peak_bytes", "arena_bytes", "strided_copy_bytes", "kernel_scratch_bytes",
       "gemm_scratchpad_bytes", "weights_held_bytes", "rss_before_bytes", "rss_peak_bytes"});
}

/// headroom's own files state every figure, and their operators sum to the total. A missing figure
/// was removed; without this check it would be skipped as not measured.
void require_complete(const JsonFields& document, const ComparedRun& run) {
  if (run.operator_times.empty()) document.fail("has no operators, so it is not complete");
  detail::require_token_times(document, run.identity);
  detail::require_identity(document, run.identity);
  const JsonFields counted = document.object("counted");
  detail::require_counts(counted, {"parameters", "weight_bytes", "kv_cache_bytes"});
  const JsonFields memory = document.object("memory");
  detail::require_counts(memory, {"arena_peak_bytes"});
  // Null where the system does not report them.
  for (const char* const key : {"rss_before_bytes", "rss_peak_bytes"}) {
    if (!document.at("memory").contains(key)) memory.fail(fmt::format("lacks \"{}\"", key));
    (void)memory.count_if(key);
  }
  detail::require_counts(document.object("context"), {"threads"});
  Integer flops = 0;
  for (std::size_t i = 0; i < run.operator_times.size(); ++i) {
    const JsonFields one(document.at("ops")[i], fmt::format("{}/ops/{}", document.where(), i));
    flops = checked_add(flops, one.count("matrix_flops"));
  }
  if (flops != counted.count("matrix_flops")) {
    counted.fail("\"matrix_flops\" is not the sum over operators");
  }
  const JsonFields time = document.object("time");
  (void)time.at("mad_s");
  const double longest = time.positive("max_s");
  constexpr double kRounding = 1e-6;
  if (detail::sum_of_operator_times(run) > longest * (1 + kRounding)) {
    document.fail("the operators sum to more than the longest run");
  }
}

/// Empty for files of other engines, and of versions that did not state it.
std::optional<AllocatedMemory> read_allocated(const JsonFields& memory) {
  const auto bytes = [&](const char* key) {
    return static_cast<std::int64_t>(memory.count_if(key).value_or(0));
  };
  if (!memory.count_if("arena_bytes")) return std::nullopt;
  return AllocatedMemory{bytes("arena_bytes"), bytes("strided_copy_bytes"),
                         bytes("kernel_scratch_bytes"), bytes("gemm_scratchpad_bytes")};
}

ComparedRun read_measurement(const nlohmann::json& json, const std::string& where) {
  const JsonFields document = detail::versioned_fields(json, where);
  if (document.has("formulas")) {
    document.fail("is a prediction; the second file must be a measurement");
  }
  ComparedRun run;
  run.engine = document.text("engine");
  // In version 1, the phase stands outside the workload.
  run.identity = detail::read_identity(
      document, document.has("phase") ? document : document.object("workload"));
  run.identity.threads = document.object("context").length_if("threads");
  run.disturbance = disturbance_in(document.object("context"));
  read_measured_time(document.object("time"), run);
  detail::store_time(document, "ttft_s", Quantity::ttft_s, run);
  detail::store_time(document, "tpot_s", Quantity::tpot_s, run);
  const JsonFields counted = document.object("counted");
  detail::store_count(counted, "parameters", Quantity::parameters, run);
  detail::store_count(counted, "matrix_flops", Quantity::matrix_flops, run);
  detail::store_count(counted, "weight_bytes", Quantity::weight_bytes, run);
  // headroom measures 0 bytes if there is no KV-cache.
  if (counted.count_if("kv_cache_bytes").value_or(0) > 0) {
    detail::store_count(counted, "kv_cache_bytes", Quantity::kv_cache_bytes, run);
  }
  const JsonFields memory = document.object("memory");
  detail::store_count(memory, "arena_peak_bytes", Quantity::peak_activation_bytes, run);
  detail::store_count(memory, "rss_peak_bytes", Quantity::rss_peak_bytes, run);
  run.rss_before_bytes = memory.count_if("rss_before_bytes");
  run.allocated = read_allocated(memory);
  detail::read_operators(document, run);
  if (run.engine != kOwnEngine) return run;
  require_own_keys(document);
  require_complete(document, run);
  return run;
}

}  // namespace

bool detail::is_headroom_measurement(const nlohmann::json& entry) {
  return entry.contains("engine");
}

ComparedRun detail::from_headroom_measurement(const nlohmann::json& entry,
                                              const std::string& where) {
  return read_measurement(entry, where);
}

ComparedRun import_measurement(std::string_view text, const std::string& where) {
  return read_measurement(detail::parse_json(text, where), where);
}

}  // namespace headroom
