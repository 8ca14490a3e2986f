// Rendering: every report as a table, JSON, CSV or Markdown. Renderers compute no figures.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "headroom/compare.h"
#include "headroom/plan.h"
#include "headroom/report.h"
#include "headroom/studies.h"
#include "headroom/sweep.h"

namespace headroom {

enum class Format { table, json, csv, markdown };
enum class Colour { off, on };

struct RenderOptions {
  Format format = Format::table;
  Detail detail = Detail::summary;
  std::size_t width = 0;  ///< columns of the terminal; 0 is unlimited
  Colour colour = Colour::off;
};

/// The report as text. JSON is described by reports/*.schema.json; CSV holds the report's main
/// table in base units. Throws Error{overflow}.
[[nodiscard]] std::string render(const AnalyzeReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ExplainReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const DiffReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const PresetsReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const LocalModelsReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const Measurement& measurement, const RenderOptions& options);
[[nodiscard]] std::string render(const Inspection& inspection, const RenderOptions& options);
[[nodiscard]] std::string render(const MachinesReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const MachineProfile& profile, const RenderOptions& options);
[[nodiscard]] std::string render(const FitReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const PlanReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ComplexityReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const AssociativityReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const GenerationReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const SharesReport& report, const RenderOptions& options);
/// JSON is one object for one comparison, a list for several.
[[nodiscard]] std::string render(std::span<const Comparison> comparisons,
                                 const RenderOptions& options);

enum class SweepFormat { csv, json_lines };

/// Writes the rows of a sweep one by one: base units, the unit in the key, an empty field or null
/// if a figure does not apply.
class SweepWriter {
 public:
  SweepWriter(SweepFormat format, const ModelSpec& spec);

  /// The line of column keys; empty for JSON lines.
  [[nodiscard]] std::string header() const;
  /// Appends one line to `text`.
  void append_row(const SweepRow& row, std::string& text);

 private:
  void start_prefix(const Workload& workload);
  [[nodiscard]] bool has_prefix_of(const Workload& workload) const;
  void append_word(std::string& text, const char* key, std::string_view value) const;
  template <class Value>
  void append_number(std::string& text, const char* key, bool applies, Value value) const;

  SweepFormat format_;
  bool has_encoder_;
  bool has_cache_;
  Workload last_;
  std::string prefix_;  ///< of the last row, up to the batch size
};

}  // namespace headroom
