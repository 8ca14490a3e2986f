// AnalyzeReport -> JSON: base units, the unit in the key, null for figures that do not apply
// (reports/analyze.schema.json).
#include "analyze_answer.h"
#include "describe.h"
#include "headroom/analysis.h"
#include "headroom/report.h"
#include "kv_cache_report.h"
#include "schema_version.h"
#include "storage_report.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Json operations_json(const CostFigures& cost) {
  return {{"matrix", json_integer(cost.matrix_flops)},
          {"elementwise", json_integer(cost.elementwise_flops)}};
}

Json no_operations_json() { return {{"matrix", nullptr}, {"elementwise", nullptr}}; }

Json operations_json_if(bool applies, const CostFigures& cost) {
  return applies ? operations_json(cost) : no_operations_json();
}

Json parameters_json(const AnalyzeReport& report) {
  const ParameterCount& count = report.analysis.parameters;
  const auto value = [&](const Expr& expr) {
    return json_integer(expr.evaluate(report.graph.sizes));
  };
  Json json;
  json["total"] = value(count.total);
  json["active"] = value(count.active);
  json["embedding"] = value(count.embedding);
  json["relative_position_bias"] = value(count.relative_position_bias);
  json["attention"] = value(count.attention);
  json["recurrent"] = value(count.recurrent);
  json["convolution"] = value(count.convolution);
  json["mlp"] = value(count.mlp);
  json["norm"] = value(count.norm);
  json["head"] = value(count.head);
  json["projector"] = value(count.projector);
  json["parts"] = {{"text", value(count.parts.text)},
                   {"vision", value(count.parts.vision)},
                   {"audio", value(count.parts.audio)},
                   {"projector", value(count.parts.projector)},
                   {"adapter", value(count.parts.adapter)}};
  return json;
}

Json reference_json(const Model& model, Integer parameters) {
  if (!model.reference) return nullptr;
  Json json;
  json["parameters"] = model.reference->parameters;
  json["precision"] = model.reference->rounded ? "rounded" : "exact";
  json["source"] = model.reference->source;
  json["match"] = check_reference(model, parameters) != ReferenceCheck::mismatch;
  return json;
}

Json memory_json(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  const bool training = report.workload.phase == Phase::train;
  const bool cached = !report.analysis.kv_cache.empty();
  const bool live = !training && !report.analysis.live.empty();
  const auto when = [](bool applies, Integer value) {
    return applies ? json_integer(value) : Json(nullptr);
  };
  Json json;
  json["weight_bytes"] = json_integer(figures.weight_bytes);
  json["peak_activation_bytes"] = when(live, figures.peak_activation_bytes);
  json["peak_activation_at"] =
      live ? Json(report.analysis.live[figures.peak_index].path) : Json(nullptr);
  json["saved_activation_bytes"] = when(training, figures.saved_activation_bytes);
  json["kv_cache_bytes"] = when(cached, figures.kv_cache_bytes);
  json["kv_cache_bytes_per_token"] = when(cached, figures.kv_cache_bytes_per_token);
  json["kv_cache_reserved_bytes"] =
      report.kv_cache ? json_integer(report.kv_cache->reserved_bytes) : Json(nullptr);
  return json;
}

Json formulas_json(const AnalyzeReport& report) {
  const Analysis& analysis = report.analysis;
  const bool training = report.workload.phase == Phase::train;
  const auto text = [&](const Expr& expr) {
    return format(readable(expr, report.graph, report.workload));
  };
  Json json;
  json["parameters"] = text(analysis.parameters.total);
  json["matrix_flops"] = text(analysis.total.forward.matrix_flops);
  json["elementwise_flops"] = text(analysis.total.forward.elementwise_flops);
  json["peak_activation_bytes"] = training || analysis.live.empty()
                                      ? Json(nullptr)
                                      : Json(text(analysis.live[report.figures.peak_index].bytes));
  json["saved_activation_bytes"] =
      training ? Json(text(saved_bytes(analysis, report.workload.recompute))) : Json(nullptr);
  const bool plain = report.kv_cache && has_plain_values(*report.kv_cache);
  json["kv_cache_bytes"] = plain ? Json(text(kv_cache_bytes(analysis))) : Json(nullptr);
  return json;
}

Json components_json(const AnalyzeReport& report) {
  const bool training = report.workload.phase == Phase::train;
  Json rows = Json::array();
  for (std::size_t i = 0; i < report.analysis.components.size(); ++i) {
    const ComponentAnalysis& component = report.analysis.components[i];
    const ComponentFigures& figures = report.figures.components[i];
    Json row;
    row["component"] = name_of(component.component);
    row["parameters"] = json_integer(figures.parameters);
    row["weight_bytes"] = json_integer(figures.weight_bytes);
    row["forward"] = operations_json(figures.forward);
    row["backward"] = operations_json_if(training, figures.backward);
    row["bytes_read"] = json_integer(figures.forward.bytes_read);
    row["bytes_written"] = json_integer(figures.forward.bytes_written);
    row["matrix_flops_formula"] =
        format(readable(component.cost.forward.matrix_flops, report.graph, report.workload));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The algorithms of recurrent mixers, which differ in a prefill only.
Json scan_json(const AnalyzeReport& report) {
  const auto flops = scan_flops(report.model.spec, report.workload);
  if (!flops) return nullptr;
  return {{"recurrence", json_integer(flops->recurrence)},
          {"chunked", json_integer(flops->chunked)},
          {"chunk_size", flops->chunk_size}};
}

Json operators_json(const AnalyzeReport& report) {
  const bool training = report.workload.phase == Phase::train;
  const Bindings values = bindings_of(report.workload, report.graph);
  Json rows = Json::array();
  for (std::size_t i = 0; i < report.analysis.nodes.size(); ++i) {
    const NodeAnalysis& node = report.analysis.nodes[i];
    const auto value = [&](const Expr& expr) { return json_integer(expr.evaluate(values)); };
    Json row;
    row["path"] = node.path;
    row["component"] = name_of(node.component);
    row["parameters"] = value(node.parameters);
    row["matrix_flops"] = value(node.cost.forward.matrix_flops);
    row["elementwise_flops"] = value(node.cost.forward.elementwise_flops);
    row["bytes_read"] = value(node.cost.forward.bytes_read);
    row["bytes_written"] = value(node.cost.forward.bytes_written);
    row["live_activation_bytes"] = training ? Json(nullptr) : value(report.analysis.live[i].bytes);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json saved_json(const AnalyzeReport& report) {
  const Bindings values = bindings_of(report.workload, report.graph);
  Json rows = Json::array();
  for (const SavedTensor& saved : report.analysis.saved) {
    rows.push_back(
        {{"path", saved.path},
         {"tensor", saved.what},
         {"kept", stays_saved(saved, report.workload.recompute)},
         {"bytes", json_integer((saved.repeat * saved.bytes).evaluate(values))},
         {"formula", format(readable(saved.repeat * saved.bytes, report.graph, report.workload))}});
  }
  return rows;
}

/// Empty unless the report is on a generation.
std::optional<std::int64_t> new_tokens_of(const AnalyzeReport& report) {
  if (report.generation) return report.generation->new_tokens;
  const bool generates = report.run && report.run->phase == MeasuredPhase::generate;
  return generates ? std::optional(report.run->new_tokens) : std::nullopt;
}

}  // namespace

Json to_json(const AnalyzeReport& report, Detail detail) {
  const Figures& figures = report.figures;
  const bool training = report.workload.phase == Phase::train;
  const bool recomputes = report.workload.recompute != Recompute::none;
  const ConventionInfo& convention = info(report.analysis.convention);
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "analyze.schema.json";
  json["model"] = to_json(report.model);
  json["workload"] = to_json(report.workload, report.model.spec, report.kv_cache);
  if (const auto new_tokens = new_tokens_of(report)) json["workload"]["new_tokens"] = *new_tokens;
  json["verdict"] = verdict_json(std::nullopt, answer_of(report));
  json["convention"] = {
      {"name", convention.name}, {"unit", convention.unit}, {"summary", convention.summary}};
  json["parameters"] = parameters_json(report);
  json["reference"] = reference_json(report.model, figures.parameters);
  json["flops"] = {{"scan", scan_json(report)},
                   {"forward", operations_json(figures.forward)},
                   {"backward", operations_json_if(training, figures.backward)},
                   {"recompute", operations_json_if(training && recomputes, figures.recompute)}};
  json["traffic"] = {{"bytes_read", json_integer(figures.forward.bytes_read)},
                     {"bytes_written", json_integer(figures.forward.bytes_written)}};
  json["memory"] = memory_json(report);
  json["storage"] = to_json(report.storage, figures.weight_bytes);
  json["kv_cache"] = report.kv_cache ? to_json(*report.kv_cache) : Json(nullptr);
  json["generation"] = nullptr;
  if (report.generation) {
    json["generation"] = {
        {"new_tokens", report.generation->new_tokens},
        {"kv_cache_used_bytes", json_integer(report.generation->use.used_bytes)},
        {"kv_cache_reserved_bytes", json_integer(report.generation->use.reserved_bytes)}};
  }
  json["run"] = report.run ? to_json(*report.run) : Json(nullptr);
  json["time"] = report.time ? to_json(*report.time) : Json(nullptr);
  json["formulas"] = formulas_json(report);
  json["components"] = components_json(report);
  if (detail == Detail::operators) {
    json["operators"] = operators_json(report);
    json["saved_tensors"] = saved_json(report);
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
