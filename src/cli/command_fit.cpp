// headroom fit MODEL: memory, time, and largest batch and context of one plan.
#include <memory>

#include "commands.h"
#include "output.h"
#include "plan_options.h"
#include "remedy_options.h"

namespace headroom::cli {
namespace {

void run_fit(const PlanOptions& options, const Command& command, int& status) {
  refuse_ignored_options(options);
  ReportOutput output(options.output);
  FitReport report = make_fit_report(question_of(options), request_of(options));
  for (const Remedy& remedy : report.remedies) {
    report.remedy_commands.push_back(command.restated(options_of(remedy)));
  }
  if (!report.result.fits) status = 1;
  output.write(render(report, render_options(options.output, Detail::summary)), report.notes);
}

}  // namespace

void add_fit(Command root, int& status) {
  auto options = std::make_shared<PlanOptions>();
  Command command =
      root.add_command("fit", "Check whether a model fits on devices, and how much would");
  add_plan_options(command, *options);
  command.set_footer(
      "Examples:\n"
      "  headroom fit llama-3-8b --machine h100-80gb --seq 8192 --batch 16\n"
      "  headroom fit llama-3-70b --machine h100-80gb --count 2 --tp 2 --weights fp8\n"
      "  headroom fit llama-3-8b --machine a100-80gb --count 8 --phase train --zero 3 --seq 8192\n"
      "  headroom fit llama-2-7b --machine rtx-4090 --phase train --adapter qlora --recompute "
      "full\n"
      "\n"
      "Exit status: 1 if it does not fit.");
  command.on_run([options, command, &status] { run_fit(*options, command, status); });
}

}  // namespace headroom::cli
