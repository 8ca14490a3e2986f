#include <fmt/format.h>

#include <utility>

#include "headroom/error.h"
#include "headroom/report.h"

namespace headroom {
namespace {

/// How far a count may be from a rounded publication: the 2017 Transformer's "65 M" and "213 M"
/// depend on a vocabulary that the paper gives as "about 37000" (arXiv 1706.03762, section 5.1).
constexpr Integer kRoundedTolerancePercent = 5;

/// What the KV-cache takes as it is stored and reserved. Values in few bits, or with scales, stand
/// in the place of the polynomials' whole bytes.
void use_kv_cache(AnalyzeReport& report, const KvCacheRequest& request) {
  const Workload& workload = report.workload;
  report.kv_cache = kv_cache_use(report.model.spec, report.graph, workload, request);
  if (!report.kv_cache) {
    if (!asks_for_policy(request)) return;
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} keeps no KV-cache in the {} phase, so it has no policy",
                            report.model.spec.name, name_of(workload.phase)),
                {}, "leave out --kv-policy, --kv-scales, --kv-block and --kv-capacity");
  }
  if (has_plain_values(*report.kv_cache)) return;
  report.figures.kv_cache_bytes = report.kv_cache->used_bytes;
  report.figures.kv_cache_bytes_per_token = report.kv_cache->bytes_per_token;
  report.notes.push_back(fmt::format(
      "traffic and time are those of a KV-cache in {} without scales", name_of(workload.kv_dtype)));
}

}  // namespace

AnalyzeReport make_analyze_report(Model model, const WorkloadRequest& request,
                                  Convention convention, const KvCacheRequest& kv_cache) {
  AnalyzeReport report;
  report.model = std::move(model);
  WorkloadRequest counted = request;
  if (const auto type = counted_type(kv_cache)) counted.kv_dtype = type;
  report.workload = resolve(counted, report.model.spec);
  const Workload& workload = report.workload;
  report.graph = build_graph(report.model.spec, graph_options(workload));
  report.analysis = analyze(report.graph, {convention, workload.recompute, workload.kernels});
  report.figures = Evaluator(report.graph, report.analysis, workload.recompute).evaluate(workload);
  report.notes = notes_on(workload, report.model.spec);
  const auto more = notes_on_saved_tensors(workload, report.model.spec);
  report.notes.insert(report.notes.end(), more.begin(), more.end());
  use_kv_cache(report, kv_cache);
  return report;
}

void add_prediction(AnalyzeReport& report, const MachineProfile& machine,
                    const TimeRequest& request) {
  TimeRequest run = request;
  if (run.phase != MeasuredPhase::generate) {
    const bool decodes = report.workload.phase == Phase::decode;
    run.phase = decodes ? MeasuredPhase::decode : MeasuredPhase::prefill;
  }
  run.computes_in_float32 = std::holds_alternative<MeasuredRates>(machine.rates);
  const ModelSpec& spec = report.model.spec;
  report.time = predict_time(spec, report.workload, machine, run);
  report.run = predict_run(spec, report.workload, run);
}

PresetsReport make_presets_report(const std::vector<Preset>& presets) {
  PresetsReport report;
  for (const Preset& preset : presets) {
    Model model = read_preset(preset);
    const Graph graph = build_graph(model.spec, {});
    const Integer parameters = count_parameters(graph).total.evaluate(graph.sizes);
    report.presets.push_back({preset, std::move(model), parameters});
  }
  return report;
}

ReferenceCheck check_reference(const Model& model, Integer parameters) noexcept {
  if (!model.reference) return ReferenceCheck::none;
  const Integer published = model.reference->parameters;
  if (parameters == published && !model.reference->rounded) return ReferenceCheck::match;
  const Integer distance = parameters > published ? parameters - published : published - parameters;
  const bool close = distance <= published / 100 * kRoundedTolerancePercent;
  if (model.reference->rounded && close) return ReferenceCheck::match_rounded;
  return ReferenceCheck::mismatch;
}

Expr readable(const Expr& formula, const Graph& graph, const Workload& workload) {
  return collapse(collapse(formula, relations_of(workload)), graph.relations);
}

}  // namespace headroom
