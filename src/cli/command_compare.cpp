// headroom compare: predictions beside measurements, with a verdict.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "compare_command.h"
#include "headroom/error.h"
#include "progress.h"
#include "run_options.h"
#include "tolerance.h"

namespace headroom::cli {
namespace {

std::vector<Comparison> comparisons_of(const CompareCommand& command) {
  if (!command.import_file.empty()) {
    if (command.subjects.size() == 1) return compare_import(command);
    throw Error(ErrorCode::invalid_input, "--import stands in the place of a second file", {},
                "name the model that was measured, and the file with --import");
  }
  if (command.subjects.size() == 2) return {compare_files(command)};
  if (command.machine != "here") {
    throw Error(ErrorCode::invalid_input,
                fmt::format("what {} does cannot be measured here", command.machine), {},
                "give its measurement with --import");
  }
  return {compare_here(command)};
}

void run(CompareCommand& command, int& status) {
  const std::vector<Comparison> comparisons = comparisons_of(command);
  std::vector<std::string> notes;
  for (const Comparison& comparison : comparisons) {
    notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
    if (comparison.result == RowResult::fail) status = 1;
  }
  if (interrupted()) notes.emplace_back("interrupted: this is what was measured until then");
  write_output(render(comparisons, render_options(command.output, Detail::summary)), notes,
               command.output);
}

void add_compare_options(CLI::App& app, CompareCommand& command) {
  app.add_option("--import", command.import_file,
                 "Another engine's measurement: llama-bench, vLLM bench, optimum-benchmark, or "
                 "headroom's own")
      ->type_name("FILE")
      ->group("Run");
  app.add_option("--machine", command.machine,
                 "That the import was measured on: here, a name of `headroom machines`, or a file")
      ->type_name("MACHINE")
      ->group("Run");
  app.add_option_function<std::vector<std::string>>(
         "--tolerance",
         [&](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) add_tolerance(text, command.options);
         },
         "How far a quantity may be off: time=10%, ops=25%, rss_peak_bytes=5%, …")
      ->type_name("QUANTITY=SHARE")
      ->group("Verdict");
  app.add_flag_callback(
         "--detail,-d", [&] { command.options.detail = Detail::operators; },
         "Single operators as well")
      ->group("Verdict");
}

}  // namespace

TimeRequest time_request(const measured::MeasureOptions& run) {
  return {run.threads, run.phase, run.new_tokens, run.backend == measured::Backend::onednn};
}

void add_compare(CLI::App& app, int& status) {
  auto command = std::make_shared<CompareCommand>();
  CLI::App* compare =
      app.add_subcommand("compare", "Predict, measure, and lay both beside each other");
  compare
      ->add_option("subjects", command->subjects,
                   "A model, or two files: a prediction (analyze --machine) and a measurement")
      ->type_name("MODEL | PREDICTED.json MEASURED.json")
      ->required()
      ->expected(1, 2);
  add_measured_phase_option(*compare, command->run.phase);
  add_inference_options(*compare, command->request);
  add_run_options(*compare, command->run);
  add_compare_options(*compare, *command);
  add_output_options(*compare, command->output);
  compare->footer(
      "Examples:\n"
      "  headroom compare bert-base\n"
      "  headroom compare gpt2 --phase generate --seq 64 --new-tokens 32 --detail\n"
      "  headroom compare predicted.json measured.json --tolerance time=10%\n"
      "  headroom compare llama-3-8b --import llama-bench.json --machine h100-80gb\n"
      "\n"
      "Exit status 1: a row failed.");
  compare->callback([command, &status] { run(*command, status); });
}

}  // namespace headroom::cli
