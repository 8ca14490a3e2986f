// headroom plan MODEL: the fastest of all legal plans for some devices.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "commands.h"
#include "headroom/error.h"
#include "plan_command.h"
#include "processes.h"
#include "progress.h"
#include "user_settings.h"

namespace headroom::cli {

namespace {

/// Throws Error{invalid_input} for another --phase.
void set_purpose(Purpose purpose, const char* flag, PlanOptions& options) {
  const bool contradicts = options.phase->is_given() && options.query.purpose != purpose;
  if (contradicts) {
    throw_invalid_input(
        fmt::format("{} contradicts --phase {}", flag, name_of(options.query.purpose)),
        "leave one of the two out");
  }
  options.query.purpose = purpose;
  count_as_given({"phase"});
}

}  // namespace

SearchSpace prepare(PlanCommand& command) {
  PlanOptions& options = command.options;
  if (command.train) set_purpose(Purpose::train, "--train", options);
  if (command.serve) set_purpose(Purpose::serve, "--serve", options);
  refuse_ignored_options(options);
  fill_in_machine(options.machine);
  fill_in_threads(command.threads);
  SearchSpace space;
  space.fixed = options.fixed;
  space.keep = command.keep;
  space.threads = command.threads;
  return space;
}

void write_report(const PlanCommand& command, PlanReport report, ReportOutput& output,
                  int& status) {
  const PlanOptions& options = command.options;
  report.lists_front = command.lists_front;
  if (report.plans.empty()) {
    status = 1;
  } else {
    const PlanChoice& best = report.plans.front().choice;
    const auto unused = notes_on_unused(options, report.question.model.spec, best);
    report.notes.insert(report.notes.end(), unused.begin(), unused.end());
    report.engine_command = engine_command_of(options, report.question, best, report.notes);
    report.engine = options.engine;
  }
  output.write(render(report, render_options(options.output, Detail::summary)), report.notes);
}

void plan_on_one_process(PlanCommand& command, int& status) {
  ReportOutput output(command.options.output);
  SearchSpace space = prepare(command);
  ProgressBar bar;
  space.progress = [&bar](double fraction) { bar.show(fraction, searching_text(fraction)); };
  PlanReport report = make_plan_report(question_of(command.options), std::move(space));
  write_report(command, std::move(report), output, status);
}

namespace {

void run_plan(PlanCommand& command, int& status) {
  if (distributed::launched_processes() > 1) return plan_on_ranks(command, status);
  plan_on_one_process(command, status);
}

}  // namespace

void add_plan(Command root, int& status) {
  constexpr CountRange kKeep{1, 1000};
  constexpr CountRange kSearchThreads{1, 1024};
  auto options = std::make_shared<PlanCommand>();
  Command command = root.add_command("plan", "Find the best parallel plan for some devices");
  add_plan_options(command, options->options);
  const Option train = command.add_flag("--train", options->train, "Short for --phase train");
  command.add_flag("--serve", options->serve, "Short for --phase serve").excludes(train);
  add_count(
      command, "--keep", kKeep,
      [options](std::int64_t n) { options->keep = static_cast<std::size_t>(n); },
      "Number of plans to list (10)");
  command.add_flag("--front", options->lists_front,
                   "List the Pareto front, too: plans that no other beats in both time and memory");
  add_count(
      command, "--search-threads", kSearchThreads,
      [options](std::int64_t n) { options->threads = static_cast<int>(n); },
      "Threads of the search of each process (all processors)");
  command.set_footer(
      "Examples:\n"
      "  headroom plan llama-3-70b --machine h100-80gb --count 64 --train --batch 512 --seq 8192\n"
      "  headroom plan llama-3-70b --machine h100-80gb --count 8 --serve --batch 64\n"
      "  headroom plan llama-3-8b --machine a100-80gb --count 16 --train --batch 128 --tp 2\n"
      "  headroom plan llama-3-70b --machine h100-80gb --count 8 --batch 64 --engine vllm\n"
      "  mpirun -n 8 headroom plan llama-3.1-405b --machine h100-80gb --count 16384 --train "
      "--batch 2048\n"
      "\n"
      "Exit status: 1 if no plan fits.");
  command.on_run([options, &status] { run_plan(*options, status); });
}

}  // namespace headroom::cli
