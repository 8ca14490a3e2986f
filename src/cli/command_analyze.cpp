// headroom analyze MODEL: parameters, FLOPs, memory and KV-cache on one screen.
#include <memory>

#include "commands.h"
#include "options.h"

namespace headroom::cli {
namespace {

struct AnalyzeOptions {
  std::string model;
  WorkloadRequest request;
  Convention convention = Convention::headroom;
  bool detail = false;
  OutputOptions output;
};

void run(const AnalyzeOptions& options) {
  const Detail detail = options.detail ? Detail::operators : Detail::summary;
  const AnalyzeReport report =
      make_analyze_report(load_model(options.model), options.request, options.convention);
  write_output(render(report, render_options(options.output, detail)), report.notes,
               options.output);
}

Choices<Convention> convention_choices() {
  Choices<Convention> choices;
  for (const ConventionInfo& convention : conventions()) {
    choices.emplace_back(convention.name, convention.convention);
  }
  return choices;
}

}  // namespace

void add_analyze(CLI::App& app) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app.add_subcommand("analyze", "Count parameters, FLOPs, memory and KV-cache");
  command->add_option("model", options->model, "A preset, a config.json, or a folder with one")
      ->type_name("MODEL")
      ->required();
  add_workload_options(*command, options->request);
  add_choice<Convention>(*command, "--convention", options->convention, convention_choices(),
                         "Whose way of counting FLOPs (headroom)");
  command->add_flag("--detail,-d", options->detail, "Every operator instead of components");
  add_output_options(*command, options->output);
  command->footer(
      "Examples:\n"
      "  headroom analyze bert-base\n"
      "  headroom analyze llama-3-8b --seq 8192 --dtype bf16\n"
      "  headroom analyze gpt2 --phase decode --past 1023 --batch 16\n"
      "  headroom analyze t5-base --enc-seq 512 --seq 64 --attention fused\n"
      "  headroom analyze ./my-model/config.json --phase train --recompute selective\n"
      "  headroom analyze bert-large --format json -o bert-large.json");
  command->callback([options] { run(*options); });
}

}  // namespace headroom::cli
