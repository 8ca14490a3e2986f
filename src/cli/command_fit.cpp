// headroom fit MODEL: memory, time, and largest batch and context of one plan; without a machine,
// the fewest devices of every machine; with a host, the parts that stay in its memory.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "device_choice.h"
#include "headroom/error.h"
#include "headroom/timeline.h"
#include "output.h"
#include "plan_options.h"
#include "remedy_options.h"
#include "split_options.h"
#include "user_settings.h"

namespace headroom::cli {
namespace {

struct FitCommand {
  PlanOptions options;
  DeviceChoiceOptions choice;
  SplitOptions split;
};

void run_device_choice(const FitCommand& fit, int& status) {
  const PlanOptions& options = fit.options;
  ReportOutput output(options.output);
  const DeviceChoiceReport report =
      make_device_choice_report(device_question_of(options, fit.choice));
  if (!any_holds_first_type(report)) status = 1;
  output.write(render(report, render_options(options.output, Detail::summary)), report.notes);
}

void run_split(const FitCommand& fit, int& status) {
  ReportOutput output(fit.options.output);
  const SplitReport report = split_report_of(fit.options, fit.split);
  if (!report.result.fits) status = 1;
  output.write(render(report, render_options(fit.options.output, Detail::summary)), report.notes);
}

/// More devices are not tried by --count auto.
constexpr std::int64_t kMostFitted = 1024;

/// A question and the plan that answers it.
struct AskedPlan {
  PlanQuestion question;
  PlanRequest request;
};

/// The fewest replicas on which the given degrees spread the experts evenly.
std::int64_t fewest_replicas(const FixedDegrees& fixed) {
  ParallelPlan plan;
  plan.tensor = fixed.tensor.value_or(1);
  plan.context = fixed.context.value_or(1);
  plan.expert_tensor = fixed.expert_tensor;
  plan.data = fixed.data.value_or(1);
  while (!fixed.data && plan.expert_replicas() % fixed.expert.value_or(1) != 0) ++plan.data;
  return plan.data;
}

/// The plan of the given degrees, on as many devices as they take; its report says why it does not
/// fit. Throws IllegalPlan for degrees that no number of devices allows.
AskedPlan asked_of_degrees(const PlanOptions& options, PlanQuestion question) {
  const FixedDegrees& fixed = options.fixed;
  PlanOptions exact = options;
  exact.count.given = fixed.tensor.value_or(1) * fixed.pipeline.value_or(1) *
                      fixed.context.value_or(1) * fewest_replicas(fixed);
  if (*exact.count.given > kMostFitted) {
    throw_invalid_input(fmt::format("the degrees take {} devices, and --count auto tries up to {}",
                                    *exact.count.given, kMostFitted),
                        fmt::format("give --count {}, or smaller degrees", *exact.count.given));
  }
  question.devices = exact.count.value();
  question.notes.push_back(fmt::format("no plan of up to {} devices fits", kMostFitted));
  return {std::move(question), request_of(exact)};
}

/// The fastest plan on the fewest devices, or that of the given degrees if none fits.
AskedPlan asked_of_fewest_devices(const PlanOptions& options, SpeedNeed need) {
  if (options.query.purpose == Purpose::train && !options.batch_size) {
    throw_invalid_input("--count auto requires --batch in training",
                        "add --batch, the sequences of one step on all devices");
  }
  PlanQuestion question = question_of(options, need);
  Planner planner(question.model.spec, question.query, question.rates);
  const ShardingLimits limits = planner.limits(question.load.seq_len);
  require_legal(options.fixed, question.load, limits);
  auto note = note_on_tensor(limits, options.fixed, kMostFitted);
  if (note) question.notes.push_back(std::move(*note));
  const auto plan = plan_on_fewest_devices(planner, question.load, options.fixed, {1, kMostFitted});
  if (!plan) return asked_of_degrees(options, std::move(question));
  PlanRequest request{plan->choice, {}};
  if (question.query.purpose == Purpose::train) request.micro_batch = plan->choice.micro_batch;
  question.devices = plan->choice.parallel.devices();
  const auto unused = notes_on_unused(options, question.model.spec, plan->choice);
  question.notes.insert(question.notes.end(), unused.begin(), unused.end());
  return {std::move(question), request};
}

AskedPlan plan_of(const PlanOptions& options, SpeedNeed need) {
  if (options.count.fewest) return asked_of_fewest_devices(options, need);
  return {question_of(options, need), request_of(options)};
}

/// Notes replicas without a sequence: --count alone adds replicas, and the default batch is 1.
void note_idle_replicas(FitReport& report) {
  const PlanQuestion& question = report.question;
  const std::int64_t replicas = report.result.choice.parallel.data;
  const std::int64_t sequences = question.load.batch_size;
  if (question.query.purpose == Purpose::train || sequences >= replicas) return;
  report.notes.push_back(
      fmt::format("a batch of {} leaves {} of {} replicas idle: --batch {} uses all, and --tp or "
                  "--pp divide the model among the devices",
                  sequences, replicas - sequences, replicas, replicas));
}

/// Throws Error{invalid_input} for a trace of anything but one plan.
void refuse_trace(const FitCommand& fit) {
  if (format_of(fit.options.output) != Format::trace) return;
  if (fit.options.machine.empty()) {
    throw_invalid_input("--format trace shows one plan, and fit compares machines",
                        "add --machine with the device of the plan");
  }
  if (asks_for_split(fit.split)) {
    throw_invalid_input("--format trace shows a training step, and a split serves",
                        "leave out the host, or choose another format");
  }
}

/// Throws Error{invalid_input} for a host of a training step.
void refuse_trained_split(const FitCommand& fit) {
  if (fit.options.query.purpose != Purpose::train) return;
  refuse_given(fit.split.all, "applies only to serving, for which a host holds a part of the model",
               "leave it out; --offload and --cpu-offloading-num-layers keep a part of training in "
               "host memory");
}

/// Throws Error{invalid_input} for groups without states to shard.
void refuse_zero_ranks(const FixedDegrees& fixed) {
  if (fixed.step.zero_ranks == 0 || fixed.zero.value_or(Zero::none) != Zero::none) return;
  throw_invalid_input("--zero-ranks divides the states that ZeRO shards, and stage 0 shards none",
                      "add --zero 1, 2 or 3, or leave out --zero-ranks");
}

void run_timeline(const PlanOptions& options) {
  ReportOutput output(options.output);
  AskedPlan plan = plan_of(options, SpeedNeed::required);
  const TimelineReport report = make_timeline_report(std::move(plan.question), plan.request);
  output.write(render_trace(report), report.notes);
}

void run_fit(FitCommand& fit, const Command& command, int& status) {
  PlanOptions& options = fit.options;
  refuse_ignored_options(options);
  refuse_zero_ranks(options.fixed);
  refuse_trained_split(fit);
  // The options that compare machines ask for all of them, not for the user's.
  if (std::ranges::none_of(fit.choice.all, &Option::is_given)) fill_in_machine(options.machine);
  refuse_trace(fit);
  if (options.machine.empty()) {
    refuse_given(fit.split.all, "requires --machine", "add --machine with the device beside it");
    return run_device_choice(fit, status);
  }
  refuse_given(fit.choice.all, "compares machines, but --machine names one",
               "leave one of the two out");
  if (asks_for_split(fit.split)) {
    refuse_given({*options.served_adapters}, "is not counted in a split between device and host",
                 "leave out the host, or merge the adapter");
    return run_split(fit, status);
  }
  if (format_of(options.output) == Format::trace) return run_timeline(options);
  ReportOutput output(options.output);
  AskedPlan plan = plan_of(options, SpeedNeed::optional);
  FitReport report = make_fit_report(std::move(plan.question), plan.request);
  note_idle_replicas(report);
  for (const Remedy& remedy : report.remedies) {
    report.remedy_commands.push_back(command.restated(options_of(remedy)));
  }
  if (report.result.fits) {
    report.engine_command =
        engine_command_of(options, report.question, report.result.choice, report.notes);
    report.engine = options.engine;
  } else {
    status = 1;
  }
  output.write(render(report, render_options(options.output, Detail::summary)), report.notes);
}

}  // namespace

void add_fit(Command root, int& status) {
  auto fit = std::make_shared<FitCommand>();
  Command command = root.add_command(
      "fit",
      "Check whether a model fits on devices, and find the largest batch and context that fit");
  add_plan_options(command, fit->options, MachineNeed::optional);
  add_device_choice_options(command, fit->choice);
  add_split_options(command, fit->split);
  command.set_footer(
      "Examples:\n"
      "  headroom fit llama-3-70b\n"
      "  headroom fit llama-3-8b --machine h100-80gb --seq 8192 --batch 16\n"
      "  headroom fit llama-3-70b --machine h100-80gb --count 2 --tp 2 --weights fp8\n"
      "  headroom fit llama-3-8b --machine a100-80gb --count 8 --phase train --zero 3 --seq 8192\n"
      "  headroom fit llama-3-8b --machine a100-80gb -n 8 --phase train --pp 8 --batch 64 -f "
      "trace\n"
      "  headroom fit llama-2-7b --machine rtx-4090 --phase train --adapter qlora --recompute "
      "full\n"
      "  headroom fit gpt-oss-120b --machine rtx-4090 --host-memory 96GiB\n"
      "  headroom fit llama-3-70b --machines h100,l40s --price h100-80gb=2.50,l40s=0.80\n"
      "\n"
      "Without --machine, finds the fewest devices of every machine, up to --count (8).\n"
      "Exit status: 1 if it does not fit.");
  command.on_run([fit, command, &status] { run_fit(*fit, command, status); });
}

}  // namespace headroom::cli
