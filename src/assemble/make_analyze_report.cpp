#include <fmt/format.h>

#include <utility>

#include "analyze_model.h"
#include "byte_text.h"
#include "headroom/error.h"
#include "headroom/llama_cpp_rates.h"
#include "headroom/microscaling.h"
#include "headroom/storage.h"
#include "setting_format.h"

namespace headroom {
namespace {

void require_no_policy(const AnalyzeReport& report, const KvCacheRequest& request) {
  if (!asks_for_policy(request)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} has no KV-cache in the {} phase", report.model.spec.name,
                          name_of(report.workload.phase)),
              {},
              fmt::format("leave out {}, {}, {}, {}, {}, {}, {}, {} and {}", Setting::kv_policy,
                          Setting::kv_scales, Setting::kv_block, Setting::kv_capacity,
                          Setting::kv_batched_tokens, Setting::kv_slots, Setting::kv_prefix_caching,
                          Setting::kv_speculative_tokens, Setting::kv_drafter_layers));
}

/// Adds the KV-cache as it is stored and reserved. Types of fewer than 8 bits, and scales, replace
/// the bytes of the graph's polynomials, which know whole bytes per element.
void add_kv_cache(AnalyzeReport& report, const KvCacheRequest& request) {
  const Workload& workload = report.workload;
  report.kv_cache = kv_cache_use(report.model.spec, report.graph, workload, request);
  if (!report.kv_cache) return require_no_policy(report, request);
  const auto more = notes_on(*report.kv_cache, workload);
  report.notes.insert(report.notes.end(), more.begin(), more.end());
  if (has_plain_values(*report.kv_cache)) return;
  report.figures.kv_cache_bytes = report.kv_cache->used_bytes;
  report.figures.kv_cache_bytes_per_token = report.kv_cache->bytes_per_token;
  report.notes.push_back(fmt::format("traffic and time assume a KV-cache in {} without scales",
                                     name_of(workload.kv_dtype)));
}

/// Notes the type of a GGUF model's KV-cache, which the file does not state.
void note_cache_type(AnalyzeReport& report, const WorkloadRequest& request,
                     const KvCacheRequest& cache) {
  const bool given = request.dtype || request.kv_dtype || cache.key_type || cache.value_type;
  const bool assumed = !given && report.workload.kv_dtype == DType::float32;
  if (!assumed || !report.kv_cache || !has_ggml_blocks(report.model.spec)) return;
  report.notes.push_back(
      fmt::format("a GGUF file states no type of the KV-cache, which counts in float32; llama.cpp "
                  "holds it in float16 unless told otherwise ({} sets it)",
                  Setting::kv_dtype));
}

/// A note where weights, KV-cache and activations exceed the device's memory.
void note_shortage(AnalyzeReport& report, const MachineProfile& machine) {
  const std::optional<Integer> memory = usable_memory(machine);
  if (!memory) return;
  const Integer cache = report.generation
                            ? report.generation->use.reserved_bytes
                            : (report.kv_cache ? report.kv_cache->reserved_bytes : Integer{0});
  const Integer needed = checked_add(checked_add(report.figures.weight_bytes, cache),
                                     report.figures.peak_activation_bytes);
  if (needed <= *memory) return;
  report.notes.push_back(fmt::format(
      "does not fit on {}: weights, KV-cache and activations are {}, its memory {}; the "
      "time assumes enough memory",
      machine.name, detail::byte_text(needed), detail::byte_text(*memory)));
}

/// Returns whether `measure` runs quantised safetensors as they are stored.
bool runs_quantised_files(const AnalyzeReport& report) {
  const Model& model = report.model;
  return !report.workload.weights && !model.weight_files.empty() &&
         !model.spec.quantization.empty();
}

}  // namespace

namespace detail {

AnalyzeReport analyze_model(Model model, const WorkloadRequest& request, Convention convention,
                            const KvCacheRequest& kv_cache) {
  AnalyzeReport report;
  report.model = with_stored_types(std::move(model), report.notes);
  WorkloadRequest counted = request;
  // The stored type decides the default of the activations.
  const DType dtype = resolve(request, report.model.spec).dtype;
  if (const auto type = counted_type(kv_cache, dtype)) counted.kv_dtype = type;
  report.workload = resolve(counted, report.model.spec);
  report.model.spec = converted(std::move(report.model.spec), request.weights);
  const Workload& workload = report.workload;
  Graph graph = build_graph(report.model.spec, graph_options(workload));
  report.storage = request.weights ? stored_weights(report.model.spec, graph)
                                   : stored_weights(report.model, graph);
  report.graph = with_stored_bytes(std::move(graph), report.storage);
  report.analysis = analyze(report.graph, {convention, workload.recompute, workload.kernels});
  report.figures = Evaluator(report.graph, report.analysis, workload.recompute).evaluate(workload);
  for (const auto& more : {report.storage.notes, notes_on(workload, report.model.spec),
                           notes_on_saved_tensors(workload, report.model.spec)}) {
    report.notes.insert(report.notes.end(), more.begin(), more.end());
  }
  add_kv_cache(report, kv_cache);
  return report;
}

}  // namespace detail

AnalyzeReport make_analyze_report(Model model, const WorkloadRequest& request,
                                  Convention convention, const KvCacheRequest& kv_cache) {
  AnalyzeReport report = detail::analyze_model(std::move(model), request, convention, kv_cache);
  note_cache_type(report, request, kv_cache);
  return report;
}

namespace {

/// Says whose kernels times of weights in ggml's blocks are of, unless the run names its engine.
void note_llama_cpp(AnalyzeReport& report, const MachineProfile& machine,
                    std::optional<Engine> engine) {
  if (engine) return;
  const auto* const sheet = std::get_if<DatasheetRates>(&machine.rates);
  const Workload& workload = report.workload;
  const bool converts = workload.arithmetic_type() != workload.dtype;
  if (sheet == nullptr || converts || !has_ggml_blocks(report.model.spec)) return;
  const auto kernels = llama_cpp_kernels(report.model.spec, workload.attention);
  auto note = note_on_llama_cpp(*sheet, kernels);
  if (note) report.notes.push_back(*std::move(note));
}

}  // namespace

void add_prediction(AnalyzeReport& report, const MachineProfile& machine,
                    const TimeRequest& request) {
  TimeRequest run = request;
  if (run.phase != MeasuredPhase::generate) {
    const bool decodes = report.workload.phase == Phase::decode;
    run.phase = decodes ? MeasuredPhase::decode : MeasuredPhase::prefill;
  }
  run.computes_in_float32 = has_own_kernels(machine);
  const ModelSpec& spec = report.model.spec;
  report.time = predict_time(spec, report.workload, machine, run);
  report.run = predict_run(spec, report.workload, run);
  // Files tell bytes that a config's rules leave out, such as the states of bitsandbytes.
  if (!run.computes_in_float32) report.run->weight_bytes = report.figures.weight_bytes;
  if (run.computes_in_float32 && runs_quantised_files(report)) {
    const Integer bytes = stored_weights(report.model, build_graph(spec, all_parts())).bytes;
    report.run->weight_bytes = bytes;
    // The files stay mapped beside the weights.
    report.run->rss_growth_bytes = checked_add(report.run->rss_growth_bytes, bytes);
  }
  note_shortage(report, machine);
  const auto conversion = conversion_note(machine, report.workload.arithmetic_type());
  if (conversion) report.notes.push_back(*conversion);
  auto mxfp8 = note_on_mxfp8(machine, spec, report.workload.arithmetic_type());
  if (mxfp8) report.notes.push_back(*std::move(mxfp8));
  note_llama_cpp(report, machine, run.engine);
}

Expr readable(const Expr& formula, const Graph& graph, const Workload& workload) {
  return collapse(collapse(formula, relations_of(workload)), graph.relations);
}

}  // namespace headroom
