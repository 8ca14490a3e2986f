#include "analyze_answer.h"

#include <fmt/format.h>

#include <vector>

#include "describe.h"
#include "document.h"
#include "units.h"

namespace headroom::detail {
namespace {

std::string describe_parameters(const Figures& figures) {
  std::string text = with_separators(figures.parameters) + " parameters";
  if (figures.active_parameters != figures.parameters) {
    text += fmt::format(" ({} active)", with_separators(figures.active_parameters));
  }
  return text;
}

std::vector<std::string> memory_parts(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  std::vector<std::string> parts{"weights " + describe_bytes(figures.weight_bytes)};
  if (report.workload.phase == Phase::train) {
    parts.push_back("saved for backward " + describe_bytes(figures.saved_activation_bytes));
  } else if (!report.analysis.live.empty()) {
    parts.push_back("peak activations " + describe_bytes(figures.peak_activation_bytes));
  }
  if (report.kv_cache) parts.push_back("KV-cache " + describe_bytes(figures.kv_cache_bytes));
  return parts;
}

}  // namespace

std::string answer_of(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  const bool trains = report.workload.phase == Phase::train;
  const Integer operations = trains ? step_operations(figures) : figures.forward.matrix_flops;
  std::vector<std::string> parts{describe_parameters(figures),
                                 describe_operations(report, operations)};
  const std::vector<std::string> memory = memory_parts(report);
  parts.insert(parts.end(), memory.begin(), memory.end());
  if (report.time) parts.push_back(duration(report.time->total_s));
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string describe_operations(const AnalyzeReport& report, Integer count) {
  const bool fused = report.analysis.convention == Convention::fvcore;
  const Unit unit =
      operation_unit(count, fused ? OperationUnit::multiply_add : OperationUnit::flop);
  return fmt::format("{} {}", cell_text(count, in_unit(unit, 3)), unit.name);
}

Integer step_operations(const Figures& figures) {
  return checked_add(checked_add(figures.forward.matrix_flops, figures.backward.matrix_flops),
                     figures.recompute.matrix_flops);
}

}  // namespace headroom::detail
