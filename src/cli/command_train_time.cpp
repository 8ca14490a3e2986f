// headroom train-time MODEL: days, energy and price of a whole training run.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "number_text.h"
#include "output.h"
#include "own_machine.h"
#include "plan_options.h"
#include "progress.h"
#include "user_settings.h"
#include "with_noun.h"

namespace headroom::cli {
namespace {

/// Tokens of a step if no batch is given: Llama 3 405B trained with 16 Mi (arXiv 2407.21783,
/// section 3.4.1).
constexpr std::int64_t kStepTokens = std::int64_t{1} << 24U;

struct TrainTimeCommand {
  PlanOptions options;
  TrainingBudget budget;
};

/// Bounds of amounts: their products stay finite, and 10¹⁸ tokens are 10⁴ times the largest runs'.
constexpr double kMostAmount = 1e18;
constexpr double kLeastAmount = 1e-18;

/// A number above 0 with an optional unit of 1000s: "15T", "300B", "5e11".
double parse_amount(const std::string& names, const std::string& text, bool with_unit) {
  std::string_view unit = text;
  const double number = detail::take_decimal(unit).value_or(0);
  double factor = 1;
  if (with_unit && unit == "M") factor = 1e6;
  if (with_unit && unit == "B") factor = 1e9;
  if (with_unit && unit == "T") factor = 1e12;
  const bool known = unit.empty() || factor > 1;
  const double amount = number * factor;
  if (!known || !(amount >= kLeastAmount) || amount > kMostAmount) {
    refuse_value(names, fmt::format("takes a number from {} to {}{}, not \"{}\"", kLeastAmount,
                                    kMostAmount, with_unit ? ", such as 15T or 300B" : "", text));
  }
  return amount;
}

TrainTimeReport searched_report(PlanQuestion question, const TrainTimeCommand& command) {
  ProgressBar bar;
  return make_train_time_report(
      std::move(question), command.options.fixed, command.budget,
      [&bar](double fraction) { bar.show(fraction, searching_text(fraction)); });
}

void run_train_time(TrainTimeCommand& command) {
  PlanOptions& options = command.options;
  refuse_ignored_options(options);
  ReportOutput output(options.output);
  fill_in_machine(options.machine);
  PlanQuestion question = question_of(options);
  std::vector<std::string> notes = question.notes;
  if (!options.batch_size) {
    question.load.batch_size = std::max<std::int64_t>(1, kStepTokens / question.load.seq_len);
    notes.push_back(
        fmt::format("a step has {} (16 Mi tokens, as Llama 3 405B); change it with --batch",
                    detail::with_noun(question.load.batch_size, "sequence")));
  }
  const MachineProfile machine = machine_named(options.machine, default_backend());
  if (const auto* sheet = std::get_if<DatasheetRates>(&machine.rates); !command.budget.power_w) {
    if (sheet != nullptr) command.budget.power_w = sheet->power_w;
  }
  const TrainTimeReport report = searched_report(std::move(question), command);
  const double step_tokens = static_cast<double>(report.question.load.batch_size) *
                             static_cast<double>(report.question.load.seq_len);
  if (step_tokens > report.budget.tokens) {
    notes.push_back(
        fmt::format("the run is one step, whose {:.0f} tokens are more than asked for: "
                    "a smaller --batch or --seq has shorter steps",
                    step_tokens));
  }
  const auto unused = notes_on_unused(options, report.question.model.spec, report.plan.choice);
  notes.insert(notes.end(), unused.begin(), unused.end());
  output.write(render(report, render_options(options.output, Detail::summary)), notes);
}

}  // namespace

void add_train_time(Command root) {
  auto options = std::make_shared<TrainTimeCommand>();
  Command command =
      root.add_command("train-time", "Predict days, energy and price of a whole training run");
  add_training_plan_options(command, options->options);
  TrainingBudget& budget = options->budget;
  command
      .add_text(
          "--tokens", "TOKENS",
          [&budget](const std::string& text) {
            budget.tokens = parse_amount("--tokens", text, true);
          },
          "Tokens to train on, such as 15T or 300B")
      .require();
  command.add_text(
      "--price", "PRICE",
      [&budget](const std::string& text) {
        budget.price_per_hour = parse_amount("--price", text, false);
      },
      "Price per device-hour, in any currency");
  command.add_text(
      "--power", "WATTS",
      [&budget](const std::string& text) { budget.power_w = parse_amount("--power", text, false); },
      "Power per device (the machine's limit)");
  command.add_text(
      "--availability", "FRACTION",
      [&budget](const std::string& text) {
        budget.availability = parse_amount("--availability", text, false);
        if (budget.availability > 1) refuse_value("--availability", "must not be above 1");
      },
      "Fraction of time in which steps run (1)");
  command.set_footer(
      "Examples:\n"
      "  headroom train-time llama-3.1-405b --tokens 15T --machine h100-80gb --count 16384 --seq "
      "8192\n"
      "  headroom train-time llama-3-8b --tokens 1T --machine b200 --count 64 --price 4 --zero 1\n"
      "\n"
      "Degrees you do not give are searched for the fastest plan.\n"
      "\n"
      "Exit status: 1 if no plan fits.");
  command.on_run([options] { run_train_time(*options); });
}

}  // namespace headroom::cli
