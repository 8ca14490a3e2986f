// Parts shared by the reports of complexity studies. Internal to src/report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "document.h"
#include "headroom/complexity.h"
#include "json_writer.h"
#include "legend.h"

namespace headroom::detail {

/// The table of fitted exponents.
void add_exponents(const ComplexityReport& report, Document& document);
/// The tables of crossover lengths; nothing without crossovers.
void add_crossovers(const ComplexityReport& report, Document& document);
/// The machines that times were measured on and predicted for.
void add_machines(const std::string& predicted, const std::optional<MachineContext>& measured,
                  Document& document);

/// Letters of the formulas and orders of all layers.
[[nodiscard]] Legend legend_of(const ComplexityReport& report);

[[nodiscard]] const std::string& name_of(const LayerComplexity& layer);

/// The order of products that costs less, of a study of associativity.
[[nodiscard]] std::string verdict_of(const ComplexityReport& report);

[[nodiscard]] Json skipped_json(const std::vector<SkippedRun>& skipped);

}  // namespace headroom::detail
