// The studies of `headroom complexity`: derived costs, then measured or predicted times.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "calibrate/last_cache.h"
#include "complexity_command.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "own_machine.h"

namespace headroom::cli {
namespace {

/// Lengths at which prefills are run; those between are interpolated.
constexpr std::size_t kPrefillsRun = 9;

TimeRequest study_time_request(const ComplexityCommand& command, const MachineProfile& machine) {
  TimeRequest request;
  request.threads = command.plan.threads;
  request.opaque_layout = command.plan.backend == measured::Backend::onednn;
  request.computes_in_float32 = has_own_kernels(machine);
  return request;
}

/// Throws Error{invalid_input} for options of a processor's profile with a datasheet, unless runs
/// are measured, too.
void refuse_unmeasured(const ComplexityCommand& command, const MachineProfile& machine) {
  if (command.measures || std::holds_alternative<MeasuredRates>(machine.rates)) return;
  refuse_given(command.processor_only,
               fmt::format("has no effect on {}, which no calibration measured", machine.name),
               "leave it out");
}

AttentionImplementation attention_of(const ComplexityCommand& command, const ModelSpec& spec) {
  return command.attention.value_or(default_attention(spec));
}

/// The model, with notes on an inexact name and on keys of its config.
Model load_noted(const ComplexityCommand& command, const std::string& name,
                 std::vector<std::string>& notes) {
  Model model = command.reading.load(name);
  if (!model.name_note.empty()) notes.push_back(model.name_note);
  const auto more = notes_on_config(model.spec);
  notes.insert(notes.end(), more.begin(), more.end());
  return model;
}

std::vector<std::int64_t> doubling(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> lengths;
  for (; first <= last; first *= 2) lengths.push_back(first);
  return lengths;
}

std::vector<std::int64_t> lengths_or(const std::vector<std::int64_t>& lengths,
                                     const std::vector<std::int64_t>& others) {
  return lengths.empty() ? others : lengths;
}

RunTask prefill_of(const LayerComplexity& layer, std::int64_t length, std::size_t series) {
  return {&layer.model,
          workload_at(layer, length),
          MeasuredPhase::prefill,
          0,
          static_cast<double>(layer.flops.by_length.at(length)),
          series};
}

/// Runs all layers of the report at all its lengths and adds the measurements.
void measure_layers(ComplexityReport& report, const ComplexityCommand& command) {
  const auto machine = machine_of(command);  // first: a profile that cannot be read costs no run
  std::vector<RunTask> tasks;
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    for (const std::int64_t length : report.lengths) {
      tasks.push_back(prefill_of(report.layers[i].layer, length, i));
    }
  }
  TaskRuns done = run_tasks(tasks, command.plan);
  if (machine) report.machine = machine->name;
  std::vector<LayerRuns> runs(report.layers.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const RunResult& result = done.results[i];
    LayerRuns& layer = runs[tasks[i].series];
    const std::int64_t length = tasks[i].workload.seq_len;
    if (!result.was_run()) {
      layer.skipped.push_back({length, result.skipped});
      continue;
    }
    layer.runs.push_back({length, result.fastest_s(),
                          time_of(result, report.layers[tasks[i].series].layer.core_paths),
                          result.median_s(), static_cast<int>(result.samples_s.size())});
  }
  for (std::size_t i = 0; machine && i < runs.size(); ++i) {
    std::vector<std::int64_t> lengths;
    for (const LengthRun& run : runs[i].runs) lengths.push_back(run.seq_len);
    runs[i].predicted = predict_runs(report.layers[i].layer, lengths, *machine,
                                     study_time_request(command, *machine));
  }
  report.uncached_bytes = measured::uncached_bytes();
  add_measurements(report, std::move(runs));
  report.context = std::move(done.context);
  report.notes.insert(report.notes.end(), done.notes.begin(), done.notes.end());
}

/// Adds predictions at all lengths.
void predict_layers(ComplexityReport& report, const ComplexityCommand& command) {
  const auto machine = machine_of(command);
  if (!machine) return;
  report.machine = machine->name;
  std::vector<LayerRuns> runs(report.layers.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].predicted = predict_runs(report.layers[i].layer, report.lengths, *machine,
                                     study_time_request(command, *machine));
  }
  add_predictions(report, std::move(runs));
}

void measure_or_predict(ComplexityReport& report, const ComplexityCommand& command) {
  if (command.measures) {
    measure_layers(report, command);
  } else {
    predict_layers(report, command);
  }
}

double matrix_flops_of(const ModelSpec& spec, const Workload& workload) {
  const Graph graph = build_graph(spec, graph_options(workload));
  const Integer flops =
      analyze(graph).total.forward.matrix_flops.evaluate(bindings_of(workload, graph));
  return static_cast<double>(flops);
}

/// Prefills of some lengths, then a generation per row. The report must outlive the tasks.
std::vector<RunTask> generation_tasks(const GenerationReport& report) {
  std::vector<RunTask> tasks;
  const std::int64_t last = report.prompt + report.rows.back().new_tokens - 1;
  for (const std::int64_t length : spread_lengths(report.prompt, last, kPrefillsRun)) {
    const Workload prefill = prefill_of(report, length);
    const double flops = matrix_flops_of(report.model.spec, prefill);
    tasks.push_back({&report.model, prefill, MeasuredPhase::prefill, 0, flops, 0});
  }
  const Workload prompt = prefill_of(report, report.prompt);
  for (const GenerationRow& row : report.rows) {
    tasks.push_back({&report.model, prompt, MeasuredPhase::generate, row.new_tokens,
                     static_cast<double>(row.flops_with), 1});
  }
  return tasks;
}

void measure_generation(GenerationReport& report, const RunPlan& plan) {
  const std::vector<std::string> encoder = encoder_paths(report.model.spec);
  const std::vector<RunTask> tasks = generation_tasks(report);
  TaskRuns done = run_tasks(tasks, plan);
  std::vector<PrefillTime> prefills;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const RunResult& result = done.results[i];
    const std::int64_t length = tasks[i].workload.seq_len;
    const bool generates = tasks[i].phase == MeasuredPhase::generate;
    if (!result.was_run()) {
      report.notes.push_back(fmt::format("not run: {} of {}: {}",
                                         generates ? "generation" : "prefill",
                                         generates ? tasks[i].new_tokens : length, result.skipped));
    } else if (generates) {
      std::ranges::find(report.rows, tasks[i].new_tokens, &GenerationRow::new_tokens)->time_with_s =
          result.fastest_s();
    } else {
      prefills.push_back({length, result.fastest_s(), time_of(result, encoder)});
      report.lengths_run.push_back(length);
    }
  }
  for (GenerationRow& row : report.rows) {
    const std::int64_t last = report.prompt + row.new_tokens - 1;
    const bool known = !prefills.empty() && prefills.back().length >= last;
    if (known) row.time_without_s = time_without_cache(prefills, report.prompt, row.new_tokens);
  }
  report.context = std::move(done.context);
  report.notes.insert(report.notes.end(), done.notes.begin(), done.notes.end());
}

void measure_shares(SharesReport& report, const RunPlan& plan) {
  std::vector<RunTask> tasks;
  tasks.reserve(report.rows.size());
  for (const ShareRow& row : report.rows) tasks.push_back(prefill_of(report.model, row.seq_len, 0));
  TaskRuns done = run_tasks(tasks, plan);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const RunResult& result = done.results[i];
    if (!result.was_run()) {
      report.skipped.push_back({report.rows[i].seq_len, result.skipped});
      continue;
    }
    std::vector<std::pair<std::string, double>> times;
    times.reserve(result.operators.size());
    for (const OperatorMeasurement& one : result.operators) {
      times.emplace_back(one.path, one.time_s);
    }
    report.rows[i].measured_s = shares_of_times(report.model, times);
  }
  report.context = std::move(done.context);
  report.notes.insert(report.notes.end(), done.notes.begin(), done.notes.end());
}

}  // namespace

std::string_view name_of(Study study) noexcept {
  switch (study) {
    case Study::layers:
      return "layers";
    case Study::associativity:
      return "associativity";
    case Study::generation:
      return "generation";
    case Study::shares:
      break;
  }
  return "shares";
}

std::optional<MachineProfile> machine_of(const ComplexityCommand& command) {
  const measured::Backend backend = command.plan.backend;
  if (!command.machine.empty()) {
    MachineProfile machine = machine_named(command.machine, backend);
    refuse_unmeasured(command, machine);
    return machine;
  }
  if (!command.measures) return std::nullopt;
  auto own = stored_profile(backend);
  const bool holds = own && mismatch(*own, backend).empty();
  return holds ? std::move(own) : std::nullopt;
}

ComplexityReport study_layers(const ComplexityCommand& command) {
  std::vector<LayerComplexity> layers;
  std::vector<std::string> notes;
  layers.reserve(command.layers.size());
  for (const std::string& name : command.layers) {
    Model model = load_noted(command, name, notes);
    const AttentionImplementation attention = attention_of(command, model.spec);
    layers.push_back(layer_complexity(std::move(model), attention));
  }
  ComplexityReport report =
      make_complexity_report(std::move(layers), lengths_or(command.lengths, doubling(64, 16384)));
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  measure_or_predict(report, command);
  return report;
}

AssociativityReport study_associativity(const ComplexityCommand& command) {
  std::vector<std::string> notes;
  const Model model = load_noted(command, command.layers.front(), notes);
  AssociativityReport report = make_associativity_report(
      model, attention_of(command, model.spec), lengths_or(command.lengths, doubling(64, 16384)));
  report.layers.notes.insert(report.layers.notes.begin(), notes.begin(), notes.end());
  measure_or_predict(report.layers, command);
  return report;
}

GenerationReport study_generation(const ComplexityCommand& command) {
  std::vector<std::string> notes;
  Model model = load_noted(command, command.layers.front(), notes);
  GenerationReport report = make_generation_report(
      std::move(model), {command.prompt.value_or(1),
                         lengths_or(command.new_tokens, doubling(16, 256)), command.enc_seq_len});
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (const auto machine = machine_of(command)) {
    add_prediction(report, *machine, study_time_request(command, *machine));
  }
  if (command.measures) measure_generation(report, command.plan);
  return report;
}

SharesReport study_shares(const ComplexityCommand& command) {
  std::vector<std::string> notes;
  Model model = load_noted(command, command.layers.front(), notes);
  const AttentionImplementation attention = attention_of(command, model.spec);
  SharesReport report = make_shares_report(std::move(model), attention,
                                           lengths_or(command.lengths, doubling(128, 32768)));
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  if (const auto machine = machine_of(command)) {
    add_prediction(report, *machine, study_time_request(command, *machine));
  }
  if (command.measures) measure_shares(report, command.plan);
  return report;
}

}  // namespace headroom::cli
