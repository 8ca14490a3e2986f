#include <fmt/format.h>

#include <utility>

#include "headroom/error.h"
#include "headroom/report.h"

namespace headroom {
namespace {

/// Parameters and types of the weight files' tensors.
void add_headers(LocalModelSummary& summary) {
  const Inspection inspection = inspect(summary.model.path);
  summary.parameters = inspection.weights.values;
  if (!inspection.types.empty()) summary.storage_type = inspection.types.front().type;
}

/// Parameters of the config, for a model without weights that can be read.
void add_config(LocalModelSummary& summary) {
  const Model model = load_model(summary.model.path);
  const Graph graph = build_graph(model.spec, {});
  summary.parameters = count_parameters(graph).total.evaluate(graph.sizes);
}

LocalModelSummary summarise(LocalModel model, std::vector<std::string>& notes) {
  LocalModelSummary summary{std::move(model), std::nullopt, {}};
  try {
    switch (summary.model.format) {
      case LocalFormat::safetensors:
      case LocalFormat::gguf:
        add_headers(summary);
        break;
      case LocalFormat::pytorch:
      case LocalFormat::config:
        add_config(summary);
        break;
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    notes.push_back(fmt::format("{}: {}", summary.model.name, error.what()));
  }
  return summary;
}

}  // namespace

LocalModelsReport make_local_models_report(LocalModels local) {
  LocalModelsReport report;
  for (const StoreProblem& problem : local.problems) {
    report.notes.push_back(fmt::format("{}: {}", problem.name, problem.message));
  }
  for (LocalModel& model : local.models) {
    report.models.push_back(summarise(std::move(model), report.notes));
  }
  return report;
}

}  // namespace headroom
