// headroom explain MODEL: the formula, the same line with numbers, the result.
#include <memory>

#include "commands.h"
#include "options.h"

namespace headroom::cli {
namespace {

struct ExplainOptions {
  std::string model;
  WorkloadRequest request;
  KvCacheRequest kv_cache;
  Subject subject = Subject::flops;
  OutputOptions output;
};

void run(const ExplainOptions& options) {
  const ExplainReport report = make_explain_report(load_model(options.model), options.request,
                                                   options.subject, options.kv_cache);
  write_output(render(report, render_options(options.output, Detail::summary)), report.notes,
               options.output);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Show the formulas that the figures come from");
  command->add_option("model", options->model, "A preset, a config.json, or a folder with one")
      ->type_name("MODEL")
      ->required();
  add_choice<Subject>(*command, "--what,-w", options->subject,
                      {{"flops", Subject::flops},
                       {"params", Subject::params},
                       {"activations", Subject::activations},
                       {"kv", Subject::kv}},
                      "Which figure to explain (flops)");
  add_workload_options(*command, options->request, options->kv_cache);
  add_output_options(*command, options->output);
  command->footer(
      "Examples:\n"
      "  headroom explain bert-base\n"
      "  headroom explain gpt2 --what params\n"
      "  headroom explain gpt2 --what activations --phase train --dtype bf16\n"
      "  headroom explain llama-3-8b --what kv --seq 8192 --dtype bf16\n"
      "  headroom explain llama-3-8b --what kv --seq 8192 --kv-dtype int4 --kv-scales group");
  command->callback([options] { run(*options); });
}

}  // namespace headroom::cli
