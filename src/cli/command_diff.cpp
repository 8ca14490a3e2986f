// headroom diff MODEL_A MODEL_B: two models under one workload, side by side.
#include <memory>

#include "commands.h"
#include "model_reading.h"
#include "options.h"

namespace headroom::cli {
namespace {

struct DiffOptions {
  std::string model_a;
  std::string model_b;
  ModelReading reading;
  WorkloadRequest request;
  OutputOptions output;
};

void run_diff(const DiffOptions& options) {
  const DiffReport report{
      make_analyze_report(options.reading.load(options.model_a), options.request),
      make_analyze_report(options.reading.load(options.model_b), options.request)};
  std::vector<std::string> notes;
  for (const AnalyzeReport* side : {&report.a, &report.b}) {
    for (const std::string& note : side->notes) {
      notes.push_back(side->model.spec.name + ": " + note);
    }
  }
  write_output(render(report, render_options(options.output, Detail::summary)), notes,
               options.output);
}

}  // namespace

void add_diff(Command root) {
  auto options = std::make_shared<DiffOptions>();
  Command command = root.add_command("diff", "Compare the figures of two models");
  command.add_argument(
      "model_a", "MODEL_A", [options](const std::string& name) { options->model_a = name; },
      "The baseline model");
  command.add_argument(
      "model_b", "MODEL_B", [options](const std::string& name) { options->model_b = name; },
      "The other model");
  add_reading_options(command, options->reading);
  add_workload_options(command, options->request);
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom diff bert-base distilbert\n"
      "  headroom diff llama-2-7b llama-3-8b --seq 4096 --dtype bf16");
  command.on_run([options] { run_diff(*options); });
}

}  // namespace headroom::cli
