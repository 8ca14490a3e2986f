// headroom serve MODEL: latency and throughput of requests under continuous batching, and the
// fewest devices that keep latency targets.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "commands.h"
#include "device_choice.h"
#include "headroom/engine_rates.h"
#include "headroom/error.h"
#include "json_text.h"
#include "output.h"
#include "progress.h"
#include "serve_command.h"
#include "serve_options.h"
#include "user_settings.h"

namespace headroom::cli {
namespace {

/// Simulated requests: enough that a hundredth of them makes a percentile, and that every user
/// comes back.
std::int64_t default_requests(const ServeCommand& command) {
  constexpr std::int64_t kRequests = 1000;
  constexpr std::int64_t kPerUser = 10;
  return std::max(kRequests, kPerUser * command.users.value_or(0));
}

Arrivals arrivals_of(const ServeCommand& command) {
  if (!command.trace.empty()) {
    count_as_given({"requests"});
    return parse_trace(detail::read_text_file(command.trace), command.trace);
  }
  if (command.users) return UserArrivals{*command.users};
  if (command.rate) return PoissonArrivals{*command.rate};
  throw_invalid_input("the requests are missing",
                      "add --rate 5 (requests per second), --users 100, or --trace FILE");
}

std::int64_t longest_request(const ServeTraffic& traffic) {
  const auto* trace = std::get_if<TraceArrivals>(&traffic.arrivals);
  if (trace == nullptr) return traffic.input_tokens + traffic.output_tokens;
  std::int64_t longest = 0;
  for (const ServeRequest& request : trace->requests) {
    longest = std::max(longest, request.input_tokens + request.output_tokens);
  }
  return longest;
}

Drafter drafter_of(const ServeCommand& command) {
  if (command.drafter == "mtp") return PredictionModule{};
  if (command.drafter == "ngram") return NgramLookup{};
  return DraftModel{command.options.reading.load(command.drafter).spec};
}

std::optional<Speculation> speculation_of(const ServeCommand& command) {
  if (!command.acceptance) {
    refuse_given(command.needs_acceptance, "needs the fraction of proposals that are accepted",
                 "add --accept, such as --accept 0.7");
    return std::nullopt;
  }
  return Speculation{drafter_of(command), command.draft_tokens, *command.acceptance};
}

/// Fills in the scheduler's limits that the options leave to the device.
void set_limits(const ServeCommand& command, ServeQuestion& question) {
  const SchedulerLimits known = default_limits(question.plan.rates);
  question.limits.max_sequences = command.max_sequences.value_or(known.max_sequences);
  question.limits.batched_tokens = command.batched_tokens.value_or(known.batched_tokens);
}

/// Throws Error{invalid_input} for options that need others, which this command may lack.
void refuse_options_of_training(const PlanOptions& options) {
  if (!serves_adapters(options)) {
    refuse_given(options.adapter_only, "applies only to adapters",
                 "leave it out, or add --adapters 4");
  }
  if (const auto* const recipe = std::get_if<Recipe>(&options.recipe)) {
    throw_invalid_input(fmt::format("--recipe {} is a training recipe", info(*recipe).name),
                        "choose a recipe to serve with, such as w8a8-fp8 or w4a16");
  }
}

/// Throws Error{invalid_input} for a seed where nothing is random.
void refuse_seed_without_chance(const ServeCommand& command) {
  if (command.rate || command.acceptance) return;
  refuse_given(command.needs_chance, "has no effect: nothing is random without --rate or --accept",
               "leave it out");
}

/// Throws Error{invalid_input} for options that change nothing here.
void refuse_options_without_effect(const ServeCommand& command) {
  refuse_options_of_training(command.options);
  refuse_ignored_options(command.options);
  refuse_seed_without_chance(command);
  if (command.question.targets.empty()) {
    refuse_given(command.needs_targets, "needs a target",
                 "add one, such as --ttft 500ms or --tpot 30ms");
  }
  if (command.users && command.requests && *command.requests < *command.users) {
    throw_invalid_input(fmt::format("--requests {} is fewer than --users {}, who each send at "
                                    "least one",
                                    *command.requests, *command.users),
                        "simulate several requests of each user, or fewer users");
  }
}

/// Fills in what the options leave to the requests.
ServeQuestion question_without_plan(ServeCommand& command) {
  PlanOptions& options = command.options;
  refuse_options_without_effect(command);
  ServeQuestion question = command.question;
  question.traffic.arrivals = arrivals_of(command);
  question.speculation = speculation_of(command);
  question.traffic.requests = command.requests.value_or(default_requests(command));
  options.seq_len = longest_request(question.traffic);
  return question;
}

ServeQuestion served_question(ServeCommand& command) {
  PlanOptions& options = command.options;
  fill_in_machine(options.machine);
  if (options.machine.empty()) {
    throw_invalid_input("--machine is required",
                        "add --machine with a name of `headroom machines`, such as h100-80gb, or "
                        "here; or --machines with several");
  }
  if (!command.hour_prices.empty()) {
    refuse_value("--price", "takes one price for one machine: prices by name need --machines");
  }
  ServeQuestion question = question_without_plan(command);
  question.plan = question_of(options);
  set_limits(command, question);
  return question;
}

/// Throws Error{invalid_input} for options that apply to one machine, and without targets.
void require_comparable(const ServeCommand& command) {
  const PlanOptions& options = command.options;
  if (!options.machine.empty()) {
    throw_invalid_input("--machines compares machines, but --machine names one",
                        "leave one of the two out");
  }
  if (command.question.targets.empty()) {
    throw_invalid_input("--machines compares the devices that meet targets",
                        "add a target, such as --ttft 500ms or --tpot 30ms");
  }
  const char* const rate = option_of_rates(options);
  if (rate != nullptr || options.engine) {
    throw_invalid_input(fmt::format("{} requires --machine", rate == nullptr ? "--engine" : rate),
                        "name one machine in place of --machines");
  }
  if (command.question.price_per_hour) {
    refuse_value("--price", "takes MACHINE=PRICE with --machines, such as h100-80gb=2.50");
  }
}

/// The question for each machine to compare.
std::vector<ServeQuestion> questions_of(ServeCommand& command) {
  ServeQuestion question = question_without_plan(command);
  question.plan = question_without_machine(command.options);
  std::vector<ServeQuestion> questions;
  std::map<std::string, double> unused = command.hour_prices;
  for (const MachineProfile& machine : machines_of(command.machines)) {
    question.plan.rates = engine_rates(machine, question.plan.model.spec, question.plan.query);
    set_limits(command, question);
    question.price_per_hour.reset();
    const auto price = command.hour_prices.find(machine.name);
    if (price != command.hour_prices.end()) question.price_per_hour = price->second;
    unused.erase(machine.name);
    questions.push_back(question);
  }
  if (!unused.empty()) {
    throw_invalid_input(
        fmt::format("\"{}\" has a price but is not one of the machines", unused.begin()->first),
        "leave the price out, or add the machine");
  }
  return questions;
}

/// Adds the command that --engine asks for, for the first plan.
void add_engine_command(std::optional<Engine> engine, ServeReport& report) {
  if (!engine) return;
  EngineCommand command = serving_command(*engine, report.question, report.plans.front());
  for (const std::string& note : command.notes) {
    report.notes.push_back(fmt::format("{}: {}", info(*engine).name, note));
  }
  report.engine_command = std::move(command.text);
  report.engine = engine;
}

/// Product of the degrees given; empty if it does not divide `devices`.
std::optional<std::int64_t> degrees_within(const FixedDegrees& fixed, std::int64_t devices) {
  std::int64_t rest = devices;
  for (const auto& degree : {fixed.tensor, fixed.pipeline, fixed.data, fixed.context}) {
    if (rest % degree.value_or(1) != 0) return std::nullopt;
    rest /= degree.value_or(1);
  }
  return devices / rest;
}

/// True if the options leave nothing open: no targets, or degrees that use all devices, or more.
bool names_one_plan(const ServeCommand& command, const LatencyTargets& targets) {
  if (targets.empty()) return true;
  if (!command.count_is_given) return false;
  const std::int64_t count = command.options.count.value();
  return degrees_within(command.options.fixed, count).value_or(count) == count;
}

/// The numbers of devices to search.
DeviceRange devices_of(const ServeCommand& command) {
  if (!command.count_is_given) return {1, command.most_devices};
  return {command.options.count.value(), command.options.count.value()};
}

ServeReport report_of(ServeCommand& command) {
  const PlanOptions& options = command.options;
  ServeQuestion question = served_question(command);
  if (names_one_plan(command, question.targets)) {
    return make_serve_report(std::move(question), request_of(options));
  }
  ProgressBar bar;
  return make_serve_report(
      std::move(question), options.fixed, devices_of(command),
      [&bar](double fraction) { bar.show(fraction, searching_text(fraction)); });
}

ServeMachinesReport machines_report(ServeCommand& command) {
  ProgressBar bar;
  return make_serve_machines_report(
      questions_of(command), command.options.fixed, devices_of(command),
      [&bar](double fraction) { bar.show(fraction, searching_text(fraction)); });
}

void run_machines(ServeCommand& command, int& status) {
  const PlanOptions& options = command.options;
  ReportOutput output(options.output);
  require_comparable(command);
  const ServeMachinesReport report = machines_report(command);
  const bool met = !report.machines.empty() && report.machines.front().plans.front().verdict.met();
  if (!met) status = 1;
  output.write(render(report, render_options(options.output, Detail::summary)), report.notes);
}

void run_serve(ServeCommand& command, int& status) {
  if (!command.machines.empty()) return run_machines(command, status);
  PlanOptions& options = command.options;
  ReportOutput output(options.output);
  ServeReport report = report_of(command);
  if (!report.plans.front().verdict.met()) status = 1;
  add_engine_command(options.engine, report);
  output.write(render(report, render_options(options.output, Detail::summary)), report.notes);
}

void apply_load(const StatedLoad& load, ServeCommand& command) {
  ServeTraffic& traffic = command.question.traffic;
  const bool has_arrivals = command.rate || !command.trace.empty();
  if (load.batch_size && !has_arrivals) command.users = load.batch_size;
  if (load.requests) command.requests = load.requests;
  traffic.input_tokens = load.seq_len.value_or(traffic.input_tokens);
  traffic.output_tokens = load.new_tokens.value_or(traffic.output_tokens);
}

}  // namespace

ServedRun served_run(const std::vector<std::string>& words, const StatedLoad& load) {
  Application parser("headroom", "", "");
  const auto command = std::make_shared<ServeCommand>();
  (void)add_serve_options(parser.root().add_command("serve", ""), command);
  std::vector<std::string> arguments{"serve"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  parser.run(arguments);
  if (!command->question.targets.empty()) {
    throw_invalid_input("a measured run has no targets", "leave out --ttft, --tpot, --end-to-end");
  }
  apply_load(load, *command);
  command->options.engine = kFittedEngine;
  ServedRun run;
  run.question = served_question(*command);
  run.request = request_of(command->options);
  return run;
}

void add_serve(Command root, int& status) {
  auto options = std::make_shared<ServeCommand>();
  Command command = root.add_command(
      "serve", "Simulate requests under continuous batching: latency, throughput, devices needed");
  const Option count = add_serve_options(command, options);
  command.set_footer(
      "Examples:\n"
      "  headroom serve llama-3-8b --machine h100-80gb --input 2000 --output 300 --rate 5\n"
      "  headroom serve llama-3-70b --machine h100-80gb --count 8 --tp 8 --users 100\n"
      "  headroom serve llama-3-70b --machine h100-80gb --count 4 --tp 4 --users 8 --draft "
      "llama-3.2-1b --accept 0.7\n"
      "  headroom serve llama-3-70b --machine h100-80gb --rate 10 --ttft 500ms --tpot 30ms "
      "--engine vllm\n"
      "  headroom serve llama-3-70b --machines h100-80gb,l40s --price h100-80gb=2.50,l40s=0.80 "
      "--rate 2 --ttft 1s --tpot 60ms\n"
      "\n"
      "Exit status: 1 if the targets are missed, or no plan has room for the requests.");
  command.on_run([options, count, &status] {
    options->count_is_given = count.is_given();
    run_serve(*options, status);
  });
}

}  // namespace headroom::cli
