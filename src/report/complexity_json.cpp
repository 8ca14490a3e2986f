// ComplexityReport -> JSON (reports/complexity.schema.json).
#include "describe.h"
#include "schema_version.h"
#include "study_words.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Json optional_integer(const std::optional<Integer>& value) {
  return value ? json_integer(*value) : Json(nullptr);
}

Json cost_json(const GrowingCost& cost, const std::vector<std::int64_t>& lengths) {
  Json json;
  json["order"] = format(cost.growth);
  json["formula"] = format(cost.formula);
  json["pieces"] = Json::array();
  for (const LengthPiece& piece : cost.by_length.pieces) {
    Json coefficients = Json::array();
    for (const Integer value : piece.polynomial.coefficients()) {
      coefficients.push_back(json_integer(value));
    }
    json["pieces"].push_back(
        {{"from", json_integer(piece.from)}, {"coefficients", std::move(coefficients)}});
  }
  json["values"] = Json::array();
  for (const std::int64_t length : lengths) {
    json["values"].push_back(json_integer(cost.by_length.at(length)));
  }
  return json;
}

Json path_json(const PathLength& path, const std::vector<std::int64_t>& lengths) {
  Json json;
  json["order"] = path.order;
  json["receptive_field"] = path.receptive_field ? Json(*path.receptive_field) : Json(nullptr);
  json["steps"] = Json::array();
  for (const std::int64_t length : lengths) {
    const auto steps = steps_between_ends(path, length);
    json["steps"].push_back(steps ? Json(*steps) : Json(nullptr));
  }
  return json;
}

Json exponent_json(const std::optional<ExponentRow>& row) {
  if (!row) return nullptr;
  return {{"from", row->from},
          {"to", row->to},
          {"points", row->measured.points},
          {"flops", row->predicted},
          {"predicted_time", json_or_null(row->predicted_time)},
          {"measured", row->measured.exponent},
          {"half_width_95", json_or_null(row->measured.half_width_95)},
          {"beyond_cache", row->beyond_cache}};
}

Json runs_json(const LayerRuns& measured) {
  Json json;
  json["runs"] = Json::array();
  for (const LengthRun& run : measured.runs) {
    json["runs"].push_back({{"seq_len", run.seq_len},
                            {"time_s", run.time_s},
                            {"core_time_s", run.core_time_s},
                            {"median_s", run.median_s},
                            {"runs", run.runs}});
  }
  json["predicted"] = Json::array();
  for (const PredictedRun& run : measured.predicted) {
    json["predicted"].push_back(
        {{"seq_len", run.seq_len}, {"time_s", run.time_s}, {"core_time_s", run.core_time_s}});
  }
  json["skipped"] = skipped_json(measured.skipped);
  return json;
}

Json layer_json(const LayerStudy& study, const std::vector<std::int64_t>& lengths) {
  const LayerComplexity& layer = study.layer;
  Json json;
  json["name"] = name_of(layer);
  json["attention"] = name_of(layer.attention);
  json["matrix_flops"] = cost_json(layer.flops, lengths);
  json["core_matrix_flops"] = layer.core ? cost_json(*layer.core, lengths) : Json(nullptr);
  json["activation_bytes"] = cost_json(layer.activation_bytes, lengths);
  json["activation_peak_at"] = layer.peak_path;
  json["sequential"] = {
      {"order", format(layer.sequential_growth)},
      {"formula", format(layer.sequential)},
      {"parallel_order",
       layer.parallel_growth ? Json(format(*layer.parallel_growth)) : Json(nullptr)}};
  json["path"] = path_json(layer.path, lengths);
  json["parameters"] = json_integer(layer.parameters);
  json["state_bytes_per_token"] = optional_integer(layer.state_bytes_per_token);
  if (layer.state_bytes_per_encoder_token) {
    json["state_bytes_per_encoder_token"] = json_integer(*layer.state_bytes_per_encoder_token);
  }
  json["state_bytes"] = optional_integer(layer.state_bytes);
  json["times"] = runs_json(study.times);
  json["exponent"] = exponent_json(study.exponent);
  json["core_exponent"] = exponent_json(study.core_exponent);
  return json;
}

Json crossovers_json(const ComplexityReport& report, const std::vector<CrossoverRow>& rows) {
  Json json = Json::array();
  for (const CrossoverRow& row : rows) {
    json.push_back({{"above", name_of(report.layers[row.above].layer)},
                    {"below", name_of(report.layers[row.below].layer)},
                    {"flops_from", optional_integer(row.flops)},
                    {"predicted_from", json_or_null(row.predicted_time)},
                    {"measured_from", json_or_null(row.measured_time)}});
  }
  return json;
}

/// Of every layer: lengths and kinds of attention vary.
Json workload_json(const ComplexityReport& report) {
  const LayerComplexity& layer = report.layers.front().layer;
  Json json = to_json(workload_at(layer, report.lengths.back()), layer.model.spec);
  json["seq_len"] = nullptr;
  json["enc_seq_len"] = nullptr;
  json["attention"] = nullptr;
  return json;
}

Json study_json(const ComplexityReport& report, const char* study, const Json& verdict) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "complexity.schema.json";
  json["study"] = study;
  json["workload"] = workload_json(report);
  if (!verdict.is_null()) json["verdict"] = verdict;
  json["lengths"] = report.lengths;
  json["layers"] = Json::array();
  for (const LayerStudy& layer : report.layers) {
    json["layers"].push_back(layer_json(layer, report.lengths));
  }
  json["crossovers"] = crossovers_json(report, report.crossovers);
  json["core_crossovers"] = crossovers_json(report, report.core_crossovers);
  json["machine"] = report.machine.empty() ? Json(nullptr) : Json(report.machine);
  json["context"] = report.context ? context_json(*report.context) : Json(nullptr);
  json["notes"] = report.notes;
  return json;
}

}  // namespace

Json skipped_json(const std::vector<SkippedRun>& skipped) {
  Json json = Json::array();
  for (const SkippedRun& one : skipped) {
    json.push_back({{"seq_len", one.seq_len}, {"reason", one.reason}});
  }
  return json;
}

Json to_json(const ComplexityReport& report) { return study_json(report, "layers", nullptr); }

Json to_json(const AssociativityReport& report) {
  return study_json(report.layers, "associativity",
                    verdict_json(std::nullopt, verdict_of(report.layers)));
}

}  // namespace headroom::detail
