// Reports: the typed answer to each question about a model, sweeps over a grid of workloads, and
// their text: tables, JSON, CSV, Markdown or HTML. Reports hold data and no text; rendering
// computes no figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/graph.h"
#include "headroom/invocation.h"
#include "headroom/machine_profile.h"
#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "headroom/predict.h"
#include "headroom/rate_fit.h"
#include "headroom/storage.h"
#include "headroom/train_time.h"
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

/// The figure that `headroom explain` derives. `elementwise` are FLOPs outside of matrix products,
/// `training` the FLOPs of a training step and `states` what it holds of the weights.
enum class Subject { flops, elementwise, params, activations, kv, training, states };

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
  /// Operators beside scores and context that `attention` counts: "recurrences and convolutions".
  std::string with{};
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
  /// Subject::kv only: tokens in the cache from which it exceeds the weights; empty if never.
  std::optional<Integer> cache_passes_weights;
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} if the model has no such figure (an encoder has no KV-cache), or for
/// `new_tokens`, which ask for the cache at the end of a generation, of another figure.
[[nodiscard]] ExplainReport make_explain_report(
    Model model, const WorkloadRequest& request, Subject subject,
    const KvCacheRequest& kv_cache = {}, std::optional<std::int64_t> new_tokens = std::nullopt);

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
/// similar names as a hint if no preset matches.
[[nodiscard]] PresetsReport find_presets(const PresetQuery& query);

/// A model of a local store on one device of a machine, at one sequence.
struct LocalFit {
  Integer total_bytes = 0;  ///< weights, KV-cache, activations and runtime
  bool fits = false;
  std::optional<std::int64_t> largest_context;  ///< in tokens; empty: no limit, or none
};

/// A model of a local store, by the headers of its files.
struct LocalModelSummary {
  LocalModel model;
  std::optional<Integer> parameters;  ///< of its files, else of its config; empty if unreadable
  std::string storage_type;           ///< that of most bytes: "BF16", "Q4_K"; empty if unreadable
  std::optional<LocalFit> fit{};      ///< if it was asked for, and the model can be read
};

/// `headroom models`.
struct LocalModelsReport {
  std::vector<LocalModelSummary> models;
  std::optional<std::string> machine;  ///< whose memory `fit` is about
  std::vector<std::string> notes;      ///< files and stores that cannot be read
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

// Sweeps: the figures of a model, row by row. A graph is built and counted once for each phase and
// attention implementation; a row then takes well under a microsecond.

/// All combinations of these values; the batch varies fastest. An empty axis has the default value
/// of WorkloadRequest.
struct SweepGrid {
  Phase phase = Phase::prefill;
  Kernels kernels = Kernels::reference;
  std::vector<AttentionImplementation> attention{};
  std::vector<Recompute> recompute{};
  std::vector<WeightForm> weights{};
  std::vector<DType> dtype{};
  std::vector<DType> arithmetic{};
  std::vector<KvTypes> kv_types{};
  std::vector<std::int64_t> images{};
  std::vector<ImageSize> image_size{};  ///< of rows with images
  std::vector<std::int64_t> audio{};
  std::vector<std::int64_t> audio_seconds{};  ///< of rows with sound
  std::vector<std::int64_t> enc_seq_len{};
  std::vector<std::int64_t> past_len{};
  std::vector<std::int64_t> seq_len{};
  std::vector<std::int64_t> batch_size{};
};

/// The figures of one workload, equal to those of `analyze`.
struct SweepRow {
  Workload workload;
  KvType key_type = KvType::float32;  ///< of the KV-cache, with a cache only
  KvType value_type = KvType::float32;
  Integer weight_bytes = 0;
  Integer matrix_flops = 0;  ///< forward
  Integer elementwise_flops = 0;
  Integer backward_matrix_flops = 0;
  Integer recompute_matrix_flops = 0;  ///< of what the backward pass computes again
  Integer traffic_bytes = 0;           ///< forward, read and written
  Integer activation_bytes = 0;        ///< the peak; in training, bytes saved for the backward pass
  Integer kv_cache_bytes = 0;
  std::optional<double> time_s;        ///< only with a machine
  std::optional<double> time_low_s{};  ///< likewise; nine of ten runs take from low to high
  std::optional<double> time_high_s{};
};

/// Receives each row; returns false to stop the sweep.
using SweepSink = std::function<bool(const SweepRow&)>;

/// Number of workloads in the grid.
[[nodiscard]] Integer size_of(const SweepGrid& grid);

/// Calls `sink` with the rows in the order of the grid until it returns false. Throws
/// Error{invalid_input} for a workload that the model cannot run, or for training on a machine;
/// Error{overflow}.
void sweep(const ModelSpec& spec, const SweepGrid& grid,
           const std::optional<MachineProfile>& machine, const SweepSink& sink);

// Rendering. Reports of other headers: compare.h, plan.h, timeline.h, complexity.h.

struct AssociativityReport;
struct Comparison;
struct ComplexityReport;
struct DeviceChoiceReport;
struct SplitReport;
struct FitReport;
struct GenerationReport;
struct PlanReport;
struct ServeMachinesReport;
struct ServeReport;
struct SharesReport;
struct SystemReport;
struct TimelineReport;

/// `trace` is for predicted and measured runs, and training steps of plans: Chrome's Trace Event
/// Format, as Perfetto reads.
enum class Format { table, json, csv, markdown, html, trace };
enum class Colour { off, on };

struct RenderOptions {
  Format format = Format::table;
  Detail detail = Detail::summary;
  std::size_t width = 0;  ///< columns of the terminal; 0 is unlimited
  Colour colour = Colour::off;
  Invocation invocation{};
};

/// The report as text. JSON is described by reports/*.schema.json; CSV holds the report's main
/// table in base units. Throws Error{overflow}.
[[nodiscard]] std::string render(const AnalyzeReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ExplainReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const DiffReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const PresetsReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const LocalModelsReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const Measurement& measurement, const RenderOptions& options);
[[nodiscard]] std::string render(const UnknownModel& model, const RenderOptions& options);
[[nodiscard]] std::string render(std::span<const ModelTypeInfo> types,
                                 const RenderOptions& options);
[[nodiscard]] std::string render(const Inspection& inspection, const RenderOptions& options);
[[nodiscard]] std::string render(const MachinesReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const MachineProfile& profile, const RenderOptions& options);
/// A machine's file with efficiencies fitted to runs, and the runs.
struct CalibrationReport {
  MachineProfile machine;
  RateFit fit;
};
/// The JSON is the machine's file, as `profile_from_json` reads it.
[[nodiscard]] std::string render(const CalibrationReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const TrainTimeReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const SplitReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const DeviceChoiceReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const FitReport& report, const RenderOptions& options);
/// In Format::trace, the only one of a timeline.
[[nodiscard]] std::string render_trace(const TimelineReport& report);
[[nodiscard]] std::string render(const PlanReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const SystemReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ServeMachinesReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ServeReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const ComplexityReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const AssociativityReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const GenerationReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const SharesReport& report, const RenderOptions& options);
/// JSON is one object for one comparison, a list for several.
[[nodiscard]] std::string render(std::span<const Comparison> comparisons,
                                 const RenderOptions& options);

/// One HTML page with the reports of `pages`, which `render` wrote.
[[nodiscard]] std::string join_pages(std::span<const std::string> pages);

enum class SweepFormat { csv, json_lines };

/// Writes the rows of a sweep one by one: base units, the unit in the key, an empty field or null
/// if a figure does not apply.
class SweepWriter {
 public:
  /// The first JSON line also says which command made the rows, if one did.
  SweepWriter(SweepFormat format, const ModelSpec& spec, Invocation invocation = {});

  /// The line of column keys; empty for JSON lines.
  [[nodiscard]] std::string header() const;
  /// Appends one line to `text`.
  void append_row(const SweepRow& row, std::string& text);

  /// Options that the command left out and that the first row has values for: "--batch · --dtype".
  [[nodiscard]] const std::string& defaults() const noexcept { return defaults_; }

 private:
  void append_figures(const SweepRow& row, std::string& text);
  void append_origin(const Workload& workload, std::string& text);
  void start_prefix(const SweepRow& row);
  [[nodiscard]] bool has_prefix_of(const SweepRow& row) const;
  void append_word(std::string& text, const char* key, std::optional<std::string_view> value) const;
  template <class Value>
  void append_number(std::string& text, const char* key, bool applies, Value value) const;

  SweepFormat format_;
  bool has_encoder_;
  bool has_cache_;
  bool has_tower_;
  bool has_audio_tower_;
  bool is_first_ = true;
  Invocation invocation_;
  std::string defaults_;
  SweepRow last_;
  std::string prefix_;  ///< of the last row, up to the batch size
};

/// All rows of a sweep.
struct SweepReport {
  ModelSpec spec;
  SweepGrid grid;
  std::string machine;         ///< its name; empty without one
  std::vector<SweepRow> rows;  ///< in the order of the grid
};

/// Rows that a page has room for as cells of its pictures.
inline constexpr Integer kMostPageRows = 400;

/// A page with the rows as heat maps over the two longest axes, or as curves over the only one, the
/// table, and the JSON lines as one array. Throws Error{invalid_input} for more rows than
/// kMostPageRows.
[[nodiscard]] std::string render_page(const SweepReport& report, const RenderOptions& options);

}  // namespace headroom
