// headroom compare: a prediction and a measurement, with a verdict.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "compare_command.h"
#include "headroom/error.h"
#include "output.h"
#include "rank_runs.h"
#include "run_options.h"
#include "tolerance.h"
#include "type_options.h"
#include "waiting_threads.h"

namespace headroom::cli {
namespace {

/// Two files state their workload.
void refuse_ignored_options(const CompareCommand& command) {
  const RunOptions& run = command.run_options;
  for (const auto* options : {&command.workload, &run.generate_only, &run.others}) {
    refuse_given(*options, "has no effect on two files, which state their own run", "leave it out");
  }
}

/// Throws Error{invalid_input} for a tolerance of operators where none are compared.
void refuse_unread_tolerance(const CompareCommand& command) {
  if (!command.options.operator_tolerance || command.detail) return;
  throw_invalid_input("--tolerance ops judges single operators, which only --detail compares",
                      "add --detail, or leave it out");
}

/// True for two JSON files, which are a prediction and a measurement: no two models are.
bool are_reports(const std::vector<std::string>& subjects) {
  return subjects.size() == 2 && std::ranges::all_of(subjects, [](const std::string& subject) {
           return subject == "-" || subject.ends_with(".json") ||
                  std::filesystem::is_regular_file(subject) || std::filesystem::is_fifo(subject);
         });
}

/// Compares every model and workload of the command by `one`.
template <class Compare>
std::vector<Comparison> compare_each(CompareCommand& command, const Compare& one) {
  std::vector<Comparison> comparisons;
  for_each_model(command.subjects, command.variations,
                 [&](const std::string& model, const VariedValues&) {
                   if (!comparisons.empty() && comparisons.back().interrupted) return;
                   command.model = model;
                   comparisons.push_back(one());
                 });
  return comparisons;
}

std::vector<Comparison> comparisons_of(CompareCommand& command) {
  if (!command.import_file.empty()) {
    count_as_given({"phase", "batch", "seq", "enc-seq", "past", "new-tokens", "threads"});
    if (command.subjects.size() == 1) return compare_import(command);
    throw_invalid_input("--import replaces the second file",
                        "give the model that was measured, and the measurement with --import");
  }
  if (are_reports(command.subjects)) {
    refuse_ignored_options(command);
    count_as_given({"phase", "batch", "seq", "enc-seq", "past", "new-tokens", "threads", "dtype",
                    "attention", "logits", "weights"});
    return {compare_files(command)};
  }
  refuse_ignored_options(command.run_options, command.run.phase);
  if (command.machine != "here") {
    throw_invalid_input(fmt::format("{} cannot be measured on this machine", command.machine),
                        "give its measurement with --import");
  }
  return compare_each(command, [&] { return compare_here(command); });
}

void write_comparisons(const CompareCommand& command, const std::vector<Comparison>& comparisons,
                       ReportOutput& output, int& status) {
  std::vector<std::string> notes;
  for (const Comparison& comparison : comparisons) {
    notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
    if (comparison.result == RowResult::fail) status = 1;
    if (comparison.interrupted) notes.push_back(interruption_note());
  }
  output.write(render(comparisons, render_options(command.output, Detail::summary)), notes);
}

/// The first rank writes the report.
void run_compare_on_ranks(CompareCommand& command, int& status) {
  const bool measures_here =
      command.import_file.empty() && command.machine == "here" && !are_reports(command.subjects);
  if (!measures_here) {
    throw_invalid_input("--tp, --pp and --dp apply to models that run on this machine",
                        "leave them out, or leave out --import, --machine and files");
  }
  refuse_given(command.operators_only,
               "has no effect on several processes, whose operators are not predicted one by one",
               "leave it out");
  refuse_ignored_options(command.run_options, command.run.phase);
  RankRun ranks(command.plan, command.run);
  ranks.run([&] {
    std::optional<ReportOutput> output;
    ranks.together([&] {
      if (ranks.reports()) output.emplace(command.output);
    });
    const auto comparisons = compare_each(command, [&] { return compare_ranks(command, ranks); });
    if (output) write_comparisons(command, comparisons, *output, status);
  });
}

void run_compare(CompareCommand& command, int& status) {
  if (command.plan.devices() > 1) return run_compare_on_ranks(command, status);
  require_one_process(command.plan, command.run);
  ReportOutput output(command.output);
  write_comparisons(command, comparisons_of(command), output, status);
}

void add_compare_options(Command app, CompareCommand& command) {
  app.add_text("--import", "FILE", command.import_file,
               "Another engine's measurement: llama-bench, vLLM bench, optimum-benchmark, "
               "headroom's own, or the start-up log of vLLM or llama.cpp")
      .group("Run");
  app.add_text("--machine", "MACHINE", command.machine,
               "Machine of the imported measurement: here, a name of `headroom machines`, or a "
               "file")
      .group("Run");
  const auto set_tolerances = [&](const std::vector<std::string>& texts) {
    add_tolerances(texts, command.options);
  };
  app.add_list("--tolerance", "QUANTITY=FRACTION", set_tolerances,
               "Allowed difference: time=10%, ops=25%, rss_peak_bytes=5%, …")
      .group("Verdict");
  command.operators_only.push_back(
      app.add_flag("--detail,-d", command.detail, "Compare single operators, too")
          .group("Verdict"));
}

}  // namespace

TimeRequest time_request(const measured::MeasureOptions& run) {
  return {run.threads, run.phase, run.new_tokens, run.backend == measured::Backend::onednn};
}

void add_compare(Command root, int& status) {
  auto options = std::make_shared<CompareCommand>();
  Command command = root.add_command("compare", "Predict, measure, and judge the difference");
  command.add_arguments("subjects", "MODEL|PREDICTED.json MEASURED.json", options->subjects, 0,
                        "Models, or two files: a prediction (analyze --machine) and a measurement");
  add_reading_options(command, options->reading);
  const InferenceOptions inference =
      add_inference_options(command, options->request, options->variations, ModelUse::run);
  options->workload = inference.sizes;
  for (const auto& more : {inference.others, add_type_options(command, options->request)}) {
    options->workload.insert(options->workload.end(), more.begin(), more.end());
  }
  options->run_options = add_run_options(command, options->run, options->variations);
  add_compare_options(command, *options);
  add_rank_options(command, options->plan, options->run);
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom compare bert-base\n"
      "  headroom compare bert-base gpt2 --threads 1,2\n"
      "  headroom compare gpt2 --phase generate --seq 64 --new-tokens 32 --detail\n"
      "  headroom compare predicted.json measured.json --tolerance time=10%\n"
      "  headroom compare llama-3-8b --import llama-bench.json --machine h100-80gb\n"
      "  headroom compare llama-3-8b --import vllm.log\n"
      "  mpirun -n 2 headroom compare bert-base --tp 2\n"
      "\n"
      "Exit status: 1 if a row failed.");
  command.on_run([options, &status] {
    prepare_threads(0);
    if (options->detail) options->options.detail = Detail::operators;
    refuse_unread_tolerance(*options);
    run_compare(*options, status);
  });
}

}  // namespace headroom::cli
