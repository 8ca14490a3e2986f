// Reports: typed answers to a question, and their one writer a format. A report holds data; nothing
// that computes prints, and nothing that prints computes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/figures.h"
#include "headroom/graph.h"
#include "headroom/inspect.h"
#include "headroom/kv_cache.h"
#include "headroom/machine_profile.h"
#include "headroom/measurement.h"
#include "headroom/model_source.h"
#include "headroom/predict.h"
#include "headroom/workload.h"

namespace headroom {

enum class Format { table, json, csv, markdown };
enum class Detail { summary, operators };
enum class Colour { off, on };

/// How a report is written.
struct RenderOptions {
  Format format = Format::table;
  Detail detail = Detail::summary;
  std::size_t width = 0;  ///< columns of the terminal; 0 is unlimited
  Colour colour = Colour::off;
};

/// `headroom analyze`: what a model costs under a workload.
struct AnalyzeReport {
  Model model;
  Workload workload;
  Graph graph;
  Analysis analysis;
  Figures figures;
  std::optional<RunFigures> run;                 ///< where a machine was named
  std::optional<TimePrediction> time;            ///< likewise
  std::optional<double> stored_bits_per_weight;  ///< where weights are taken as files hold them
  std::optional<KvCacheUse> kv_cache;            ///< where there is one
  std::vector<std::string> notes;
};

/// Builds the graph and counts it. A type in `kv_cache` stands in for the request's. Throws
/// Error{invalid_input}, Error{overflow}.
[[nodiscard]] AnalyzeReport make_analyze_report(Model model, const WorkloadRequest& request,
                                                Convention convention = Convention::headroom,
                                                const KvCacheRequest& kv_cache = {});

/// Adds what a run on `machine` will count and take. Throws Error{invalid_input}.
void add_prediction(AnalyzeReport& report, const MachineProfile& machine,
                    const TimeRequest& request);

/// Gives the weights of `report` the bytes that they take in the model's own files, where these are
/// quantised and explained; false, and nothing changed, where they are not.
bool use_stored_weights(AnalyzeReport& report, const Inspection& inspection);

/// What `headroom explain` explains.
enum class Subject { flops, params, activations, kv };

[[nodiscard]] std::string_view name_of(Subject subject) noexcept;

/// A figure with the formula that it comes from.
struct ExplainedFigure {
  std::string name;
  Expr formula;
  Integer value = 0;
};

/// A formula that people use instead, beside the exact figure that it stands for.
struct RuleOfThumb {
  std::string name;  ///< the rule as it is usually written
  Expr formula;
  Integer value = 0;
  std::string stands_for;  ///< what it approximates: the whole, or the layers alone
  Expr exact_formula;
  Integer exact = 0;
  std::string source;
};

/// From which length on attention costs a decoder or an encoder more than its feed-forward network.
struct AttentionPassesFfn {
  Expr attention;                  ///< of one position of one layer, where all are alike
  Expr ffn;                        ///< likewise
  std::optional<Integer> seq_len;  ///< empty where it never does
};

/// `headroom explain`: where a figure comes from.
struct ExplainReport {
  Model model;
  Workload workload;
  Subject subject = Subject::flops;
  std::string unit;
  std::vector<Relation> relations;  ///< that hold here, such as h·k → d
  Bindings values;                  ///< of every symbol
  ExplainedFigure whole;
  std::vector<ExplainedFigure> parts;  ///< sum to the whole, except for peaks
  std::vector<RuleOfThumb> rules;
  std::optional<KvCacheUse> kv_cache;                      ///< where the KV-cache is explained
  std::optional<AttentionPassesFfn> attention_passes_ffn;  ///< where a prefill's FLOPs are
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} where the model has no such figure (an encoder has no KV-cache).
[[nodiscard]] ExplainReport make_explain_report(Model model, const WorkloadRequest& request,
                                                Subject subject,
                                                const KvCacheRequest& kv_cache = {});

/// `headroom diff`: two models under the same request.
struct DiffReport {
  AnalyzeReport a;
  AnalyzeReport b;
};

/// `headroom presets list` and `show`.
struct PresetSummary {
  Preset preset;
  Model model;
  Integer parameters = 0;
};
struct PresetsReport {
  std::vector<PresetSummary> presets;
};

/// `headroom machines`: this machine's own profiles, and the catalogue.
struct MachinesReport {
  std::vector<MachineProfile> own;
  std::vector<MachineProfile> catalogue;
};

[[nodiscard]] PresetsReport make_presets_report(const std::vector<Preset>& presets);

/// Whether the counted parameters are those that were published.
enum class ReferenceCheck { none, match, match_rounded, mismatch };
[[nodiscard]] ReferenceCheck check_reference(const Model& model, Integer parameters) noexcept;

/// The report as text. Throws Error{overflow}.
[[nodiscard]] std::string render(const AnalyzeReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ExplainReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const DiffReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const PresetsReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const Measurement& measurement, const RenderOptions& options);
[[nodiscard]] std::string render(const Inspection& inspection, const RenderOptions& options);
[[nodiscard]] std::string render(const MachinesReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const MachineProfile& profile, const RenderOptions& options);

/// A formula as it reads for this graph and workload: related sizes collapsed, element sizes as
/// numbers.
[[nodiscard]] Expr readable(const Expr& formula, const Graph& graph, const Workload& workload);

/// The version of every JSON document that headroom writes; a field is only ever added within one.
inline constexpr int kSchemaVersion = 1;

}  // namespace headroom
