// headroom explain MODEL: the formula of a figure, the formula with numbers, the result.
#include <memory>

#include "commands.h"
#include "model_reading.h"
#include "options.h"
#include "output.h"
#include "variations.h"

namespace headroom::cli {
namespace {

struct ExplainOptions {
  std::string model;
  Variations variations;
  ModelReading reading;
  WorkloadRequest request;
  KvCacheRequest kv_cache;
  Subject subject = Subject::flops;
  OutputOptions output;
};

void run_explain(const ExplainOptions& options) {
  ReportOutput output(options.output);
  JoinedReports reports(format_of(options.output));
  std::vector<std::string> notes;
  options.variations.for_each([&](const VariedValues& varied) {
    const ExplainReport report = make_explain_report(
        options.reading.load(options.model), options.request, options.subject, options.kv_cache);
    reports.add(render(report, render_options(options.output, Detail::summary)), varied);
    add_new_notes(report.notes, notes);
  });
  output.write(reports.text(), notes);
}

}  // namespace

void add_explain(Command root) {
  auto options = std::make_shared<ExplainOptions>();
  Command command = root.add_command("explain", "Derive a figure from its formula");
  add_model_argument(command, options->model);
  add_reading_options(command, options->reading);
  const Choices<Subject> subjects{{"flops", Subject::flops},
                                  {"params", Subject::params},
                                  {"activations", Subject::activations},
                                  {"kv", Subject::kv}};
  add_choice(command, "--what,-w", options->subject, subjects, "Figure to explain (flops)");
  add_workload_options(command, options->request, options->kv_cache, options->variations);
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom explain bert-base\n"
      "  headroom explain gpt2 --what params\n"
      "  headroom explain gpt2 --what activations --phase train --dtype bf16\n"
      "  headroom explain llama-3-8b --what kv --seq 8192 --dtype bf16\n"
      "  headroom explain llama-3-8b --what kv --seq 8192 --kv-dtype int4 --kv-scales group");
  command.on_run([options] { run_explain(*options); });
}

}  // namespace headroom::cli
