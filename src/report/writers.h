// One writer per report: a Document for the screen, Markdown, HTML and CSV, and Json. Internal to
// src/report.
#pragma once

#include "document.h"
#include "headroom/claim.h"
#include "headroom/compare.h"
#include "headroom/complexity.h"
#include "headroom/crossover.h"
#include "headroom/derivation.h"
#include "headroom/device_choice.h"
#include "headroom/memory_split.h"
#include "headroom/plan_report.h"
#include "headroom/report.h"
#include "headroom/serve.h"
#include "headroom/system.h"
#include "json_writer.h"

namespace headroom::detail {

[[nodiscard]] Document to_document(const AnalyzeReport& report, Detail detail);
[[nodiscard]] Json to_json(const AnalyzeReport& report, Detail detail);

[[nodiscard]] Document to_document(const ExplainReport& report);
/// One row per figure, for CSV.
[[nodiscard]] Document to_figure_table(const ExplainReport& report);
[[nodiscard]] Json to_json(const ExplainReport& report);

[[nodiscard]] Document to_document(const Derivation& derivation);
/// One row per step, for CSV.
[[nodiscard]] Document to_step_table(const Derivation& derivation);
[[nodiscard]] Json to_json(const Derivation& derivation);

[[nodiscard]] Document to_document(const ClaimReport& report);
[[nodiscard]] Json to_json(const ClaimReport& report);

[[nodiscard]] Document to_document(const CrossoverReport& report);
[[nodiscard]] Json to_json(const CrossoverReport& report);

[[nodiscard]] Document to_document(const DiffReport& report);
[[nodiscard]] Json to_json(const DiffReport& report);

/// One row per preset; with Detail::operators, all that is known of the first.
[[nodiscard]] Document to_document(const PresetsReport& report, Detail detail);
/// One row per preset.
[[nodiscard]] Document to_preset_table(const PresetsReport& report);
[[nodiscard]] Json to_json(const PresetsReport& report);

[[nodiscard]] Document to_document(const LocalModelsReport& report);
[[nodiscard]] Json to_json(const LocalModelsReport& report);

/// Adds a row per rank of a measurement over several processes, the slowest, and their traffic.
void add_ranks(const RanksMeasurement& measured, Document& document);
[[nodiscard]] Json ranks_json(const RanksMeasurement& measured);

/// Adds a row per rank of a comparison over several processes, and the slowest.
void add_ranks(const ComparedRanks& compared, Document& document);
[[nodiscard]] Json ranks_json(const ComparedRanks& compared);

/// Adds the predicted times of operators and of the whole pass.
void add_time(const TimePrediction& time, Detail detail, Document& document);
[[nodiscard]] Json to_json(const TimePrediction& time);
[[nodiscard]] Json to_json(const RunFigures& run);

[[nodiscard]] Document to_document(const MachinesReport& report);
[[nodiscard]] Json to_json(const MachinesReport& report);
[[nodiscard]] Document to_document(const MachineProfile& profile);
/// A datasheet as one row, or the measured kernels.
[[nodiscard]] Document to_figure_table(const MachineProfile& profile);
[[nodiscard]] Document to_document(const CalibrationReport& report);
[[nodiscard]] Document to_document(const TrainTimeReport& report);
/// The run in one row, for CSV.
[[nodiscard]] Document to_run_table(const TrainTimeReport& report);
[[nodiscard]] Json to_json(const TrainTimeReport& report);

[[nodiscard]] Document to_document(const UnknownModel& model, Detail detail);
/// Tensors by storage type, for CSV.
[[nodiscard]] Document to_type_table(const UnknownModel& model);
[[nodiscard]] Json to_json(const UnknownModel& model);

[[nodiscard]] Document to_document(std::span<const ModelTypeInfo> types);
[[nodiscard]] Json to_json(std::span<const ModelTypeInfo> types);

[[nodiscard]] Document to_document(const Inspection& inspection);
/// All components, for CSV.
[[nodiscard]] Document to_component_table(const Inspection& inspection);
[[nodiscard]] Json to_json(const Inspection& inspection);
/// Tensors by storage type; the last row is the total.
[[nodiscard]] Table storage_type_table(const Inspection& inspection);
/// Tensors by component, at most `most` rows and the sum of the others.
[[nodiscard]] Table component_table(const Inspection& inspection, std::size_t most);
[[nodiscard]] Json totals_json(const TensorTotals& totals);
[[nodiscard]] Json types_json(const Inspection& inspection);

[[nodiscard]] Document to_document(const Measurement& measurement);
[[nodiscard]] Json to_json(const Measurement& measurement);

[[nodiscard]] Document to_document(const Comparison& comparison);
/// One row per quantity of every comparison, for CSV.
[[nodiscard]] Document to_row_table(std::span<const Comparison> comparisons);
[[nodiscard]] Json to_json(const Comparison& comparison);

[[nodiscard]] Document to_document(const SplitReport& report);
[[nodiscard]] Json to_json(const SplitReport& report);
[[nodiscard]] Document to_document(const DeviceChoiceReport& report);
[[nodiscard]] Json to_json(const DeviceChoiceReport& report);

[[nodiscard]] Document to_document(const FitReport& report);
[[nodiscard]] Json to_json(const FitReport& report);

[[nodiscard]] Document to_document(const PlanReport& report);
/// The plans, which may be none.
[[nodiscard]] Document to_plan_table(const PlanReport& report);
[[nodiscard]] Json to_json(const PlanReport& report);
[[nodiscard]] Document to_document(const SystemReport& report);
/// One row per graphics device.
[[nodiscard]] Document to_device_table(const SystemReport& report);
[[nodiscard]] Json to_json(const SystemReport& report);
[[nodiscard]] Document to_document(const ServeMachinesReport& report);
[[nodiscard]] Json to_json(const ServeMachinesReport& report);
[[nodiscard]] Document to_document(const ServeReport& report);
[[nodiscard]] Json to_json(const ServeReport& report);

[[nodiscard]] Document to_document(const ComplexityReport& report);
/// One row per layer and length, for CSV.
[[nodiscard]] Document to_length_table(const ComplexityReport& report);
[[nodiscard]] Json to_json(const ComplexityReport& report);

[[nodiscard]] Document to_document(const AssociativityReport& report);
[[nodiscard]] Json to_json(const AssociativityReport& report);

[[nodiscard]] Document to_document(const GenerationReport& report);
[[nodiscard]] Json to_json(const GenerationReport& report);

[[nodiscard]] Document to_document(const SharesReport& report);
/// One row per length and part of the model, for CSV.
[[nodiscard]] Document to_length_table(const SharesReport& report);
[[nodiscard]] Json to_json(const SharesReport& report);

}  // namespace headroom::detail
