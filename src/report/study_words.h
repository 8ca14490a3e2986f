// What reports of the complexity studies have in common. Internal to src/report.
#pragma once

#include "document.h"
#include "headroom/studies.h"
#include "json_writer.h"

namespace headroom::detail {

[[nodiscard]] Document to_document(const ComplexityReport& report);
/// One layer at one length a row: what CSV holds.
[[nodiscard]] Document to_length_table(const ComplexityReport& report);
[[nodiscard]] Json to_json(const ComplexityReport& report);

[[nodiscard]] Document to_document(const AssociativityReport& report);
[[nodiscard]] Json to_json(const AssociativityReport& report);

[[nodiscard]] Document to_document(const GenerationReport& report);
[[nodiscard]] Json to_json(const GenerationReport& report);

[[nodiscard]] Document to_document(const SharesReport& report);
[[nodiscard]] Document to_length_table(const SharesReport& report);
[[nodiscard]] Json to_json(const SharesReport& report);

/// The tables of exponents and crossovers, as far as there are any.
void add_exponents(const ComplexityReport& report, Document& document);
void add_crossovers(const ComplexityReport& report, Document& document);
/// Lines about the machines that times are of.
void add_machines(const std::string& predicted, const std::optional<MachineContext>& measured,
                  Document& document);

/// What a layer is called in these reports.
[[nodiscard]] const std::string& name_of(const LayerComplexity& layer);

[[nodiscard]] Json skipped_json(const std::vector<SkippedRun>& skipped);

}  // namespace headroom::detail
