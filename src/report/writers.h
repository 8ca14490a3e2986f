// What each report becomes: a Document for people, Json for programs. Internal to src/report.
#pragma once

#include "document.h"
#include "headroom/report.h"
#include "json_writer.h"

namespace headroom::detail {

[[nodiscard]] Document to_document(const AnalyzeReport& report, Detail detail);
[[nodiscard]] Json to_json(const AnalyzeReport& report, Detail detail);

[[nodiscard]] Document to_document(const ExplainReport& report);
/// The figures alone, one a row: what CSV holds.
[[nodiscard]] Document to_figure_table(const ExplainReport& report);
[[nodiscard]] Json to_json(const ExplainReport& report);

[[nodiscard]] Document to_document(const DiffReport& report);
[[nodiscard]] Json to_json(const DiffReport& report);

[[nodiscard]] Document to_document(const PresetsReport& report);
/// One preset a row, also when there is a single one: what CSV holds.
[[nodiscard]] Document to_preset_table(const PresetsReport& report);
[[nodiscard]] Json to_json(const PresetsReport& report);

/// The predicted time as a table of operators and lines.
void add_time(const TimePrediction& time, Detail detail, Document& document);
[[nodiscard]] Json to_json(const TimePrediction& time);
[[nodiscard]] Json to_json(const RunFigures& run);

[[nodiscard]] Document to_document(const MachinesReport& report);
[[nodiscard]] Json to_json(const MachinesReport& report);
[[nodiscard]] Document to_document(const MachineProfile& profile);

[[nodiscard]] Document to_document(const Inspection& inspection);
/// The components alone, all of them: what CSV holds.
[[nodiscard]] Document to_component_table(const Inspection& inspection);
[[nodiscard]] Json to_json(const Inspection& inspection);

[[nodiscard]] Document to_document(const Measurement& measurement);
[[nodiscard]] Json to_json(const Measurement& measurement);

}  // namespace headroom::detail
