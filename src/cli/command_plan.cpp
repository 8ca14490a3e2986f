// headroom plan MODEL: the best of all legal plans for some devices.
#include <memory>

#include "commands.h"
#include "headroom/render_plan.h"
#include "plan_options.h"

namespace headroom::cli {
namespace {

struct PlanCommand {
  PlanOptions options;
  bool train = false;
  bool serve = false;
  std::size_t keep = 10;
  int threads = 0;
};

void run(PlanCommand& command) {
  PlanOptions& options = command.options;
  if (command.train) options.query.purpose = Purpose::train;
  SearchSpace space;
  space.fixed = options.fixed;
  space.keep = command.keep;
  space.threads = command.threads;
  const PlanReport report = make_plan_report(question_of(options), space);
  write_output(render(report, render_options(options.output, Detail::summary)), report.notes,
               options.output);
}

}  // namespace

void add_plan(CLI::App& app) {
  auto command = std::make_shared<PlanCommand>();
  CLI::App* plan = app.add_subcommand("plan", "Find the best parallel plan for some devices");
  add_plan_options(*plan, command->options);
  CLI::Option* train = plan->add_flag("--train", command->train, "The same as --phase train");
  plan->add_flag("--serve", command->serve, "The same as --phase serve")->excludes(train);
  add_count(
      *plan, "--keep", [command](std::int64_t n) { command->keep = static_cast<std::size_t>(n); },
      "How many of the best plans are shown (10)")
      ->check(CLI::Range(1, 1000));
  add_count(
      *plan, "--threads", [command](std::int64_t n) { command->threads = static_cast<int>(n); },
      "Threads of the search (all of this machine)")
      ->check(CLI::Range(1, 1024));
  plan->footer(
      "Examples:\n"
      "  headroom plan llama-3-70b --machine h100-80gb --count 64 --train --batch 512 --seq 8192\n"
      "  headroom plan llama-3-70b --machine h100-80gb --count 8 --serve --batch 64\n"
      "  headroom plan llama-3-8b --machine a100-80gb --count 16 --train --batch 128 --tp 2");
  plan->callback([command] { run(*command); });
}

}  // namespace headroom::cli
