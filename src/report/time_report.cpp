// TimePrediction -> lines, a table of operators, and JSON.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// A summary sums operators below this fraction of the time in one row.
constexpr double kLeastShownFraction = 0.01;

Table operator_times(const TimePrediction& time, Detail detail) {
  Table table;
  const bool decodes = time.decode_bound.has_value();
  table.columns = {
      words_column("operator", "Operator"),
      milliseconds_column("time_s", "Time"),
      milliseconds_column("low_s", "Low", Importance::optional),
      milliseconds_column("high_s", "High", Importance::optional),
      share_column("share_percent", "Share", {"[%]", 1}),
      words_column("bound", decodes ? "Prefill by" : "Bound by", Importance::optional)};
  if (decodes) {
    table.columns.push_back(words_column("decode_bound", "Decode by", Importance::optional));
  }
  table.columns.push_back(
      number_column("roofline_percent", "Roofline", {"[%]", 0}, Importance::optional));
  const auto add = [&](const std::string& name, double seconds, double low, double high,
                       std::optional<Bound> bound, std::optional<Bound> decode_bound,
                       double roofline) {
    const auto text_of = [](std::optional<Bound> one) {
      return one ? std::string(name_of(*one)) : std::string("–");
    };
    std::vector<Cell> row{name, seconds, low, high, 100 * seconds / time.total_s, text_of(bound)};
    if (decodes) row.emplace_back(text_of(decode_bound));
    row.emplace_back(100 * roofline);
    table.rows.push_back(std::move(row));
  };
  OperatorTime others;
  for (const OperatorTime& one : time.operators) {
    if (detail == Detail::summary && one.time_s < kLeastShownFraction * time.total_s) {
      others.time_s += one.time_s;
      others.low_s += one.low_s;
      others.high_s += one.high_s;
      others.roofline_share += one.roofline_share * one.time_s;
      continue;
    }
    add(one.path, one.time_s, one.low_s, one.high_s, one.bound, one.decode_bound,
        one.roofline_share);
  }
  if (others.time_s > 0) {
    add("others", others.time_s, others.low_s, others.high_s, std::nullopt, std::nullopt,
        others.roofline_share / others.time_s);
  }
  add("total", time.total_s, time.low_s, time.high_s, time.first_bound, time.decode_bound,
      time.roofline_share);
  table.total_rows = 1;
  return table;
}

std::string machine_text(const TimePrediction& time) {
  switch (time.basis) {
    case TimeBasis::modelled:
      return fmt::format("{} · {}, modelled from measured curves", time.machine,
                         describe_threads(time.threads));
    case TimeBasis::assumed:
      break;
  }
  if (!time.efficiency) return fmt::format("{}, assumed", time.machine);
  const Efficiency& fractions = time.efficiency->fractions;
  return fmt::format(
      "{}, assumed: {:.0f} % of peak arithmetic, {:.0f} % of memory bandwidth{} ({}: {})",
      time.machine, 100 * fractions.matrix, 100 * fractions.memory,
      fixed_times_text({time.kernel_s, time.layer_gemm_kernel_s, time.layer_gemm_type},
                       "operator with weights"),
      name_of(time.efficiency->origin), time.efficiency_source);
}

Json bound_json(std::optional<Bound> bound) { return bound ? Json(name_of(*bound)) : nullptr; }

Json efficiency_json(const TimePrediction& time) {
  if (!time.efficiency) return nullptr;
  const SourcedEfficiency& efficiency = *time.efficiency;
  return {{"matrix", efficiency.fractions.matrix},
          {"memory", efficiency.fractions.memory},
          {"kernel_s", time.kernel_s},
          {"layer_gemm_kernel_s", time.layer_gemm_kernel_s},
          {"origin", name_of(efficiency.origin)},
          {"source", time.efficiency_source}};
}

}  // namespace

void add_time(const TimePrediction& time, Detail detail, Document& document) {
  document.add_line("machine", machine_text(time));
  document.blocks.push_back(operator_times(time, detail));
  document.add_line("time",
                    fmt::format("{}, from {} to {} · bound by {} · {:.0f} % of the roofline",
                                duration(time.total_s), duration(time.low_s), duration(time.high_s),
                                name_of(time.bound), 100 * time.roofline_share));
  document.add_line("throughput", grouped(time.tokens_per_s, 1) + " tokens/s");
  add_token_times(time.ttft_s, time.tpot_s, document);
}

Json to_json(const TimePrediction& time) {
  Json json;
  json["machine"] = time.machine;
  json["basis"] = name_of(time.basis);
  json["efficiency"] = efficiency_json(time);
  json["threads"] = time.threads == 0 ? Json(nullptr) : Json(time.threads);
  json["total_s"] = time.total_s;
  json["low_s"] = time.low_s;
  json["high_s"] = time.high_s;
  json["bound"] = name_of(time.bound);
  json["decode_bound"] = bound_json(time.decode_bound);
  json["roofline_share"] = time.roofline_share;
  json["tokens_per_s"] = time.tokens_per_s;
  json["ttft_s"] = json_or_null(time.ttft_s);
  json["tpot_s"] = json_or_null(time.tpot_s);
  json["ops"] = Json::array();
  for (const OperatorTime& one : time.operators) {
    json["ops"].push_back({{"path", one.path},
                           {"time_s", one.time_s},
                           {"low_s", one.low_s},
                           {"high_s", one.high_s},
                           {"bound", name_of(one.bound)},
                           {"decode_bound", bound_json(one.decode_bound)},
                           {"roofline_share", one.roofline_share}});
  }
  return json;
}

Json to_json(const RunFigures& run) {
  Json json;
  json["phase"] = name_of(run.phase);
  json["new_tokens"] = run.new_tokens == 0 ? Json(nullptr) : Json(run.new_tokens);
  json["parameters"] = json_integer(run.parameters);
  json["matrix_flops"] = json_integer(run.matrix_flops);
  json["weight_bytes"] = json_integer(run.weight_bytes);
  json["kv_cache_bytes"] = run.kv_cache_bytes ? json_integer(*run.kv_cache_bytes) : Json(nullptr);
  json["peak_activation_bytes"] = json_integer(run.peak_activation_bytes);
  json["rss_growth_bytes"] = json_integer(run.rss_growth_bytes);
  return json;
}

}  // namespace headroom::detail
