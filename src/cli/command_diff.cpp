// headroom diff MODEL_A MODEL_B: the same workload on two models, side by side.
#include <memory>

#include "commands.h"
#include "options.h"

namespace headroom::cli {
namespace {

struct DiffOptions {
  std::string model_a;
  std::string model_b;
  WorkloadRequest request;
  OutputOptions output;
};

void run(const DiffOptions& options) {
  const DiffReport report{make_analyze_report(load_model(options.model_a), options.request),
                          make_analyze_report(load_model(options.model_b), options.request)};
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

void add_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff", "Compare the figures of two models");
  command->add_option("model_a", options->model_a, "The one to compare with")
      ->type_name("MODEL_A")
      ->required();
  command->add_option("model_b", options->model_b, "The other one")
      ->type_name("MODEL_B")
      ->required();
  add_workload_options(*command, options->request);
  add_output_options(*command, options->output);
  command->footer(
      "Examples:\n"
      "  headroom diff bert-base distilbert\n"
      "  headroom diff llama-2-7b llama-3-8b --seq 4096 --dtype bf16");
  command->callback([options] { run(*options); });
}

}  // namespace headroom::cli
