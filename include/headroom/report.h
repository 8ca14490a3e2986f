// Reports: the typed answer to each question about a model. They hold data and no text; render.h
// writes them as tables, JSON, CSV or Markdown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/graph.h"
#include "headroom/inspect.h"
#include "headroom/kv_cache.h"
#include "headroom/local_models.h"
#include "headroom/machine_profile.h"
#include "headroom/model_source.h"
#include "headroom/predict.h"
#include "headroom/weight_storage.h"
#include "headroom/workload.h"

namespace headroom {

/// Rows of a report: components, or every operator.
enum class Detail { summary, operators };

/// KV-cache at the end of a generation: it holds the prompt and all new tokens but the last, which
/// no pass reads.
struct GenerationCache {
  std::int64_t new_tokens = 0;
  KvCacheUse use;
};

/// `headroom analyze`: parameters, FLOPs, memory and KV-cache of a model under a workload.
struct AnalyzeReport {
  Model model;
  Workload workload;
  StoredWeights storage;
  Graph graph;
  Analysis analysis;
  Figures figures;
  std::optional<RunFigures> run;              ///< with a machine only
  std::optional<KvCacheUse> kv_cache;         ///< empty without a KV-cache
  std::optional<GenerationCache> generation;  ///< if new tokens were asked for
  std::optional<TimePrediction> time;         ///< with a machine only
  std::vector<std::string> notes;
};

/// `model` with the types of its files, if it has any that can be read; a note says why they
/// cannot. Another says how the model's name was understood.
[[nodiscard]] Model with_stored_types(Model model, std::vector<std::string>& notes);

/// Builds the graph and counts it. Weights have their stored bytes, or those of the request's type.
/// A type in `kv_cache` replaces the request's. Throws Error{invalid_input}, Error{overflow}.
[[nodiscard]] AnalyzeReport make_analyze_report(Model model, const WorkloadRequest& request,
                                                Convention convention = Convention::headroom,
                                                const KvCacheRequest& kv_cache = {});

/// Adds the KV-cache at the end of `new_tokens` generated tokens. Throws Error{invalid_input}
/// unless the model generates and the phase is prefill.
void add_generation(AnalyzeReport& report, const KvCacheRequest& request, std::int64_t new_tokens);

/// Predicts counts and time of a run on `machine`. Throws Error{invalid_input}.
void add_prediction(AnalyzeReport& report, const MachineProfile& machine,
                    const TimeRequest& request);

/// The figure that `headroom explain` derives.
enum class Subject { flops, params, activations, kv };

[[nodiscard]] std::string_view name_of(Subject subject) noexcept;

/// A figure and its formula.
struct ExplainedFigure {
  std::string name;
  Expr formula;
  Integer value = 0;
};

/// A common approximation and the exact figure that it estimates.
struct RuleOfThumb {
  std::string name;  ///< as it is usually written: "2·N·b·s"
  Expr formula;
  Integer value = 0;
  std::string estimates;  ///< "matrix FLOPs", "parameters", "layers", …
  Expr exact_formula;
  Integer exact = 0;
  std::string source;
  std::vector<std::string> differences;  ///< what the model has that the rule does not assume
};

/// The length at which attention overtakes the feed-forward network in FLOPs.
struct FfnCrossover {
  Expr attention;                  ///< left side of attention > FFN, common factors removed
  Expr ffn;                        ///< right side
  std::optional<Integer> seq_len;  ///< empty if attention never overtakes it
};

/// `headroom explain`: the formulas of a figure.
struct ExplainReport {
  Model model;
  Workload workload;
  Subject subject = Subject::flops;
  std::string unit;
  std::vector<Relation> relations;  ///< between sizes of this model, such as h·k → d
  Bindings values;                  ///< of every symbol
  ExplainedFigure whole;
  std::vector<ExplainedFigure> parts;  ///< sum to `whole`, except for peaks
  std::vector<RuleOfThumb> rules;
  std::optional<KvCacheUse> kv_cache;         ///< Subject::kv only
  std::optional<FfnCrossover> ffn_crossover;  ///< Subject::flops of a prefill only
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} if the model has no such figure (an encoder has no KV-cache).
[[nodiscard]] ExplainReport make_explain_report(Model model, const WorkloadRequest& request,
                                                Subject subject,
                                                const KvCacheRequest& kv_cache = {});

/// `headroom diff`: two models under one workload.
struct DiffReport {
  AnalyzeReport a;
  AnalyzeReport b;
};

/// One row of `headroom presets`.
struct PresetSummary {
  Preset preset;
  Model model;
  Integer parameters = 0;
};

/// `headroom presets list` and `show`.
struct PresetsReport {
  std::vector<PresetSummary> presets;
};

[[nodiscard]] PresetsReport make_presets_report(const std::vector<Preset>& presets);

/// Order of a list of presets.
enum class PresetOrder { name, parameters };

/// Which presets to list, and in which order.
struct PresetQuery {
  std::string text{};    ///< part of a name, alias or repository, in any case; empty: all
  std::string family{};  ///< a model_type; presets of its family stay; empty: all
  std::optional<Integer> max_parameters{};
  PresetOrder order = PresetOrder::name;
};

/// The presets that the query asks for. Throws Error{invalid_input} for an unknown family, and with
/// similar names as a hint if no preset fits.
[[nodiscard]] PresetsReport find_presets(const PresetQuery& query);

/// A model of a local store, by the headers of its files.
struct LocalModelSummary {
  LocalModel model;
  std::optional<Integer> parameters;  ///< of its files, else of its config; empty if unreadable
  std::string storage_type;           ///< that of most bytes: "BF16", "Q4_K"; empty if unreadable
};

/// `headroom models`.
struct LocalModelsReport {
  std::vector<LocalModelSummary> models;
  std::vector<std::string> notes;  ///< files and stores that cannot be read
};

/// Opens every model of `local` by its headers.
[[nodiscard]] LocalModelsReport make_local_models_report(LocalModels local);

/// The machines of the catalogue whose names contain `text`, in any case. Throws
/// Error{invalid_input} with similar names as a hint if there is none.
[[nodiscard]] std::vector<MachineProfile> find_machines(const std::string& text);

/// `headroom machines`: profiles measured on this machine, and the catalogue's datasheets.
struct MachinesReport {
  std::vector<MachineProfile> own;
  std::vector<MachineProfile> catalogue;
};

/// Agreement of counted parameters with the published count. A count published as "65 M" agrees
/// within 5 %.
enum class ReferenceCheck { none, match, match_rounded, mismatch };
[[nodiscard]] ReferenceCheck check_reference(const Model& model, Integer parameters) noexcept;

/// `formula` in the fewest symbols for this graph and workload: related sizes collapsed, element
/// sizes as numbers.
[[nodiscard]] Expr readable(const Expr& formula, const Graph& graph, const Workload& workload);

}  // namespace headroom
