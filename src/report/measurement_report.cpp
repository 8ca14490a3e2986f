// Measurement -> Document and JSON (reports/measure.schema.json).
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "schema_version.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Cell rate_of(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? Cell{amount / seconds} : Cell{};
}

Table operator_table(const Measurement& measurement) {
  Table table;
  constexpr Integer kBillion = 1'000'000'000;
  table.columns = {
      words_column("operator", "Operator"),
      milliseconds_column("time_s", "Time"),
      share_column("time_share_percent", "Share", {"[%]", 2}),
      number_column("matrix_flops", "Matrix", {"[GFLOP]", 3, kBillion}),
      number_column("flops_per_s", "Rate", {"[GFLOP/s]", 1, kBillion}),
      number_column("bytes_per_s", "Traffic", {"[GB/s]", 1, kBillion}, Importance::optional)};
  double total = 0;
  std::int64_t bytes = 0;
  for (const OperatorMeasurement& one : measurement.operators) {
    total += one.time_s;
    bytes += one.bytes;
  }
  const auto add = [&](const std::string& name, double time, std::int64_t flops,
                       std::int64_t moved) {
    table.rows.push_back({name, time, total > 0 ? Cell{100 * time / total} : Cell{},
                          flops == 0 ? Cell{} : Cell{Integer{flops}},
                          rate_of(static_cast<double>(flops), time),
                          rate_of(static_cast<double>(moved), time)});
  };
  for (const OperatorMeasurement& one : measurement.operators) {
    add(one.path, one.time_s, one.matrix_flops, one.bytes);
  }
  add("total", total, measurement.counted.matrix_flops, bytes);
  table.total_rows = 1;
  return table;
}

Json bytes_json(const std::optional<std::int64_t>& bytes) {
  return bytes ? Json(*bytes) : Json(nullptr);
}

std::string resident_text(const MeasuredMemory& memory) {
  if (!memory.rss_before_bytes || !memory.rss_peak_bytes) return "–";
  return fmt::format("{} peak, {} before the run", describe_bytes(*memory.rss_peak_bytes),
                     describe_bytes(*memory.rss_before_bytes));
}

/// "Q4_K 1.20 GiB · Q6_K 0.30 GiB · F32 (from F16) 2.00 MiB"
std::string formats_text(const std::vector<WeightFormat>& formats) {
  std::string text;
  for (const WeightFormat& format : formats) {
    if (!text.empty()) text += " · ";
    text += format.held;
    if (format.stored != format.held) text += fmt::format(" (from {})", format.stored);
    text += " " + describe_bytes(format.bytes);
  }
  return text;
}

std::string arithmetic_text(const std::string& activations) {
  if (activations == "bfloat16") {
    return "activations bfloat16 · products with bfloat16 weights, summed in float32";
  }
  return activations == "int8"
             ? "activations int8 in blocks of 32 · integer products, summed in float32"
             : "activations float32 · stored weights decoded to float32";
}

Json formats_json(const std::vector<WeightFormat>& formats) {
  Json list = Json::array();
  for (const WeightFormat& format : formats) {
    list.push_back({{"stored", format.stored},
                    {"held", format.held},
                    {"parameters", format.parameters},
                    {"bytes", format.bytes}});
  }
  return list;
}

/// "22.87 GFLOP by the processor's counters, 22.35 GFLOP of GEMMs counted"
std::string retired_text(const RetiredOperations& retired, std::int64_t matrix_flops) {
  if (!retired.per_run) return "–";
  constexpr double kBillion = 1e9;
  return fmt::format(
      "{:.3f} GFLOP a run by the processor's counters, {:.3f} GFLOP of GEMMs counted",
      *retired.per_run / kBillion, static_cast<double>(matrix_flops) / kBillion);
}

/// "598.8 µs ± 4.1 µs (median ± MAD of 20 runs, 592.6 µs to 663.2 µs)"; one run has no spread.
std::string time_text(const TimeStatistics& time) {
  const std::size_t runs = time.samples_s.size();
  if (runs == 1) return fmt::format("{} (1 run)", duration(time.median_s));
  return fmt::format("{} ± {} (median ± MAD of {} runs, {} to {})", duration(time.median_s),
                     duration(time.mad_s), runs, duration(time.min_s), duration(time.max_s));
}

/// As `describe`, of a whole generation: "generate · batch 1 · seq 64 · … · 16 new tokens".
std::string workload_text(const Measurement& measurement) {
  std::string text = describe(measurement.workload, measurement.model.spec);
  if (measurement.phase != MeasuredPhase::generate) return text;
  const std::string_view first = name_of(measurement.workload.phase);
  if (text.starts_with(first)) text.replace(0, first.size(), name_of(measurement.phase));
  return fmt::format("{} · {}", text,
                     with_noun(static_cast<Integer>(measurement.new_tokens), "new token"));
}

std::string plan_text(const RanksMeasurement& ranks) {
  return fmt::format("{} · {} processes · operators, memory and counts of rank 0", ranks.plan,
                     ranks.ranks.size());
}

}  // namespace

Document to_document(const Measurement& measurement) {
  const ModelSpec& spec = measurement.model.spec;
  const TimeStatistics& time = measurement.time;
  const MachineContext& context = measurement.context;
  Document document;
  document.add_subject(spec.name, describe(spec));
  document.add_line("workload", workload_text(measurement));
  document.add_line("machine", fmt::format("{} · {} · {}", context.cpu,
                                           describe_threads(context.threads), context.backend));
  if (measurement.interrupted) document.add_line("interrupted", kInterruptedText);
  if (measurement.ranks) document.add_line("plan", plan_text(*measurement.ranks));
  document.blocks.push_back(operator_table(measurement));
  document.add_line("time", time_text(time));
  add_token_times(measurement.ttft_s, measurement.tpot_s, document);
  for (const std::vector<std::int64_t>& ids : measurement.generated_ids) {
    document.add_line("tokens", fmt::format("{}", fmt::join(ids, " ")));
  }
  if (measurement.retired) {
    document.add_line("retired",
                      retired_text(*measurement.retired, measurement.counted.matrix_flops));
  }
  document.add_line("weights", describe_bytes(measurement.counted.weight_bytes));
  if (!measurement.weight_formats.empty()) {
    document.add_line("held as", formats_text(measurement.weight_formats));
  }
  if (!measurement.activations.empty()) {
    document.add_line("arithmetic", arithmetic_text(measurement.activations));
  }
  document.add_line("peak activations",
                    fmt::format("{} of live tensors, counted",
                                describe_bytes(measurement.memory.arena_peak_bytes)));
  document.add_line("allocated", describe_allocated(measurement.memory.allocated));
  if (measurement.counted.kv_cache_bytes > 0) {
    document.add_line("KV-cache", describe_bytes(measurement.counted.kv_cache_bytes));
  }
  document.add_line("resident", resident_text(measurement.memory));
  if (measurement.ranks) add_ranks(*measurement.ranks, document);
  return document;
}

Json to_json(const Measurement& measurement) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "measure.schema.json";
  json["engine"] = measurement.engine;
  json["model"] = to_json(measurement.model);
  json["workload"] = to_json(measurement.workload, measurement.model.spec);
  if (measurement.phase == MeasuredPhase::generate) {
    json["workload"]["new_tokens"] = measurement.new_tokens;
  }
  const TimeStatistics& time = measurement.time;
  json["time"] = {{"median_s", time.median_s},
                  {"mad_s", time.mad_s},
                  {"min_s", time.min_s},
                  {"max_s", time.max_s},
                  {"samples_s", time.samples_s}};
  json["ttft_s"] = json_or_null(measurement.ttft_s);
  json["tpot_s"] = json_or_null(measurement.tpot_s);
  if (!measurement.generated_ids.empty()) json["generated_ids"] = measurement.generated_ids;
  json["counted"] = {{"parameters", measurement.counted.parameters},
                     {"matrix_flops", measurement.counted.matrix_flops},
                     {"weight_bytes", measurement.counted.weight_bytes},
                     {"kv_cache_bytes", measurement.counted.kv_cache_bytes}};
  if (measurement.retired) {
    const RetiredOperations& retired = *measurement.retired;
    json["retired"] = {
        {"float_operations", json_or_null(retired.per_run)},
        {"refusal", retired.refusal.empty() ? Json(nullptr) : Json(retired.refusal)}};
  }
  const AllocatedMemory& allocated = measurement.memory.allocated;
  json["memory"] = {{"arena_peak_bytes", measurement.memory.arena_peak_bytes},
                    {"arena_bytes", allocated.arena_bytes},
                    {"strided_copy_bytes", allocated.strided_copy_bytes},
                    {"kernel_scratch_bytes", allocated.kernel_scratch_bytes},
                    {"gemm_scratchpad_bytes", allocated.gemm_scratchpad_bytes},
                    {"weights_held_bytes", measurement.memory.weights_held_bytes},
                    {"rss_before_bytes", bytes_json(measurement.memory.rss_before_bytes)},
                    {"rss_peak_bytes", bytes_json(measurement.memory.rss_peak_bytes)}};
  json["weight_formats"] = formats_json(measurement.weight_formats);
  json["activations"] =
      measurement.activations.empty() ? Json(nullptr) : Json(measurement.activations);
  json["ops"] = Json::array();
  for (const OperatorMeasurement& one : measurement.operators) {
    json["ops"].push_back({{"path", one.path},
                           {"time_s", one.time_s},
                           {"matrix_flops", one.matrix_flops},
                           {"bytes", one.bytes}});
  }
  if (measurement.ranks) json["processes"] = ranks_json(*measurement.ranks);
  json["context"] = context_json(measurement.context);
  json["warnings"] = measurement.warnings;
  json["interrupted"] = measurement.interrupted;
  return json;
}

}  // namespace headroom::detail
