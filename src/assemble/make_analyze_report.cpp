#include <fmt/format.h>

#include <utility>

#include "analyze_model.h"
#include "headroom/error.h"
#include "setting_format.h"

namespace headroom {
namespace {

void require_no_policy(const AnalyzeReport& report, const KvCacheRequest& request) {
  if (!asks_for_policy(request)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} has no KV-cache in the {} phase", report.model.spec.name,
                          name_of(report.workload.phase)),
              {},
              fmt::format("leave out {}, {}, {} and {}", Setting::kv_policy, Setting::kv_scales,
                          Setting::kv_block, Setting::kv_capacity));
}

/// Adds the KV-cache as it is stored and reserved. Types of fewer than 8 bits, and scales, replace
/// the bytes of the graph's polynomials, which know whole bytes per element.
void add_kv_cache(AnalyzeReport& report, const KvCacheRequest& request) {
  const Workload& workload = report.workload;
  report.kv_cache = kv_cache_use(report.model.spec, report.graph, workload, request);
  if (!report.kv_cache) return require_no_policy(report, request);
  if (has_plain_values(*report.kv_cache)) return;
  report.figures.kv_cache_bytes = report.kv_cache->used_bytes;
  report.figures.kv_cache_bytes_per_token = report.kv_cache->bytes_per_token;
  report.notes.push_back(fmt::format("traffic and time assume a {} KV-cache without scales",
                                     name_of(workload.kv_dtype)));
}

}  // namespace

namespace detail {

AnalyzeReport analyze_model(Model model, const WorkloadRequest& request, Convention convention,
                            const KvCacheRequest& kv_cache) {
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
  add_kv_cache(report, kv_cache);
  return report;
}

}  // namespace detail

AnalyzeReport make_analyze_report(Model model, const WorkloadRequest& request,
                                  Convention convention, const KvCacheRequest& kv_cache) {
  AnalyzeReport report = detail::analyze_model(std::move(model), request, convention, kv_cache);
  detail::apply_stored_weights(report);
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

Expr readable(const Expr& formula, const Graph& graph, const Workload& workload) {
  return collapse(collapse(formula, relations_of(workload)), graph.relations);
}

}  // namespace headroom
