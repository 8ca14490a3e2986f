// headroom diff MODEL_A MODEL_B…: models under one workload, side by side with the first.
#include <memory>

#include "commands.h"
#include "model_reading.h"
#include "options.h"
#include "output.h"
#include "variations.h"

namespace headroom::cli {
namespace {

struct DiffOptions {
  std::string model_a;
  std::vector<std::string> others;
  Variations variations;
  ModelReading reading;
  WorkloadRequest request;
  KvCacheRequest kv_cache;
  OutputOptions output;
};

DiffReport report_of(const DiffOptions& options, const std::string& other) {
  const auto analyzed = [&](const std::string& model) {
    return make_analyze_report(options.reading.load(model), options.request, Convention::headroom,
                               options.kv_cache);
  };
  return {analyzed(options.model_a), analyzed(other)};
}

std::vector<std::string> notes_of(const DiffReport& report) {
  std::vector<std::string> notes;
  for (const AnalyzeReport* side : {&report.a, &report.b}) {
    for (const std::string& note : side->notes) {
      notes.push_back(side->model.spec.name + ": " + note);
    }
  }
  return notes;
}

void run_diff(const DiffOptions& options) {
  ReportOutput output(options.output);
  JoinedReports reports(format_of(options.output));
  std::vector<std::string> notes;
  for_each_model(options.others, options.variations,
                 [&](const std::string& other, const VariedValues& varied) {
                   const DiffReport report = report_of(options, other);
                   reports.add(render(report, render_options(options.output, Detail::summary)),
                               varied);
                   add_new_notes(notes_of(report), notes);
                 });
  output.write(reports.text(), notes);
}

}  // namespace

void add_diff(Command root) {
  auto options = std::make_shared<DiffOptions>();
  Command command = root.add_command("diff", "Compare the figures of models");
  command.add_argument(
      "model_a", "MODEL_A", [options](const std::string& name) { options->model_a = name; },
      "The baseline model");
  command.add_arguments("model_b", "MODEL_B", options->others, 0,
                        "The other models, each compared with the baseline");
  add_reading_options(command, options->reading);
  add_workload_options(command, options->request, options->kv_cache, options->variations);
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom diff bert-base distilbert\n"
      "  headroom diff gpt2 gpt2-medium gpt2-large\n"
      "  headroom diff llama-2-7b llama-3-8b --seq 4096 --dtype bf16");
  command.on_run([options] { run_diff(*options); });
}

}  // namespace headroom::cli
