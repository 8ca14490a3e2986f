// The pictures of each report's page, in the order of the page; none if a report has none. Internal
// to src/report.
#pragma once

#include <string>
#include <vector>

#include "headroom/compare.h"
#include "headroom/complexity.h"
#include "headroom/plan_report.h"
#include "headroom/report.h"
#include "headroom/serve.h"

namespace headroom::detail {

/// Treemaps of parameters, weights and FLOPs; layers of several kinds; memory in the order of
/// execution; with a machine, the operators' rates.
[[nodiscard]] std::vector<std::string> pictures_of(const AnalyzeReport& report);

/// Layers of a decoder that has several kinds, as bars of their matrix FLOPs; empty otherwise.
[[nodiscard]] std::string layer_map(const AnalyzeReport& report);

/// Measured against predicted values that have a tolerance.
[[nodiscard]] std::vector<std::string> pictures_of(const Comparison& comparison);

/// A rank's memory against the device, the loads that fit, and the parts of the time.
[[nodiscard]] std::vector<std::string> pictures_of(const FitReport& report);

/// Percentiles of latencies; with a search, the plans by latency and throughput.
[[nodiscard]] std::vector<std::string> pictures_of(const ServeReport& report);

/// Figures of both models, and their differences by component.
[[nodiscard]] std::vector<std::string> pictures_of(const DiffReport& report);

/// Time and memory of the plans.
[[nodiscard]] std::vector<std::string> pictures_of(const PlanReport& report);

/// FLOPs and measured times of layers over the length.
[[nodiscard]] std::vector<std::string> pictures_of(const ComplexityReport& report);

/// Reports without pictures.
template <class Report>
[[nodiscard]] std::vector<std::string> pictures_of(const Report& /*report*/) {
  return {};
}

}  // namespace headroom::detail
