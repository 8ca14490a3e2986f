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
#include "headroom/serve.h"
#include "json_text.h"
#include "output.h"
#include "plan_option_values.h"
#include "plan_options.h"
#include "serve_command.h"
#include "user_settings.h"

namespace headroom::cli {
namespace {

constexpr const char* kTrafficGroup = "Requests";
constexpr const char* kSchedulerGroup = "Scheduler";
constexpr const char* kDraftGroup = "Speculative decoding";
constexpr const char* kTargetGroup = "Targets";

/// Devices of a search without --count.
constexpr std::int64_t kMostDevices = 64;

struct ServeCommand {
  PlanOptions options;
  ServeQuestion question;
  std::optional<double> rate;
  std::optional<std::int64_t> users;
  std::optional<std::int64_t> requests;
  std::string trace;
  std::string drafter = "mtp";
  std::int64_t draft_tokens = 3;
  std::optional<double> acceptance;
  std::vector<Option> needs_acceptance;
  bool count_is_given = false;
  std::int64_t most_devices = kMostDevices;
  std::vector<std::string> machines;          ///< to compare; empty: one machine
  std::map<std::string, double> hour_prices;  ///< of a device, by machine
};

/// Simulated requests: enough that a hundredth of them makes a percentile, and that every user
/// comes back.
std::int64_t default_requests(const ServeCommand& command) {
  constexpr std::int64_t kRequests = 1000;
  constexpr std::int64_t kPerUser = 10;
  return std::max(kRequests, kPerUser * command.users.value_or(0));
}

Arrivals arrivals_of(const ServeCommand& command) {
  if (!command.trace.empty()) {
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

/// Fills in what the options leave to the requests.
ServeQuestion question_without_plan(ServeCommand& command) {
  PlanOptions& options = command.options;
  refuse_ignored_options(options);
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
  EngineCommand command = serving_command(*engine, report.question, report.plans.front().choice);
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
  return make_serve_report(std::move(question), options.fixed, devices_of(command));
}

void run_machines(ServeCommand& command, int& status) {
  const PlanOptions& options = command.options;
  ReportOutput output(options.output);
  require_comparable(command);
  const ServeMachinesReport report =
      make_serve_machines_report(questions_of(command), options.fixed, devices_of(command));
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

void add_traffic(Command root, const std::shared_ptr<ServeCommand>& command) {
  constexpr double kMostPerSecond = 1e6;
  constexpr CountRange kCounts{1, 100'000'000};
  constexpr CountRange kTokens{1, std::int64_t{1} << 30U};
  ServeTraffic& traffic = command->question.traffic;
  // Elsewhere --output is the file of the report.
  const auto set_output = [&traffic, kTokens](const std::string& text) {
    const char* const names = "--output-tokens";
    if (text.find_first_not_of("0123456789") != std::string::npos) {
      refuse_value(names, fmt::format("takes the tokens of an answer, not \"{}\"; -o {} writes the "
                                      "report to a file",
                                      text, text));
    }
    traffic.output_tokens = parse_count(names, text, kTokens);
  };
  const auto set_rate = [command](const std::string& text) {
    command->rate = parse_positive("--rate", text, kMostPerSecond);
  };
  const Option rate =
      root.add_text("--rate", "N", set_rate, "Requests per second, at random times (Poisson)")
          .group(kTrafficGroup);
  Option users = add_count(
      root, "--users", kCounts, [command](std::int64_t n) { command->users = n; },
      "Users, each sending the next request after the last answer");
  users.group(kTrafficGroup).excludes(rate);
  Option trace = root.add_text(
      "--trace", "FILE", command->trace,
      "Requests, one JSON object per line: arrival_s, input_tokens, output_tokens; or, as "
      "Mooncake's, timestamp (ms), input_length, output_length");
  trace.group(kTrafficGroup).excludes(rate).excludes(users);
  add_count(
      root, "--input-tokens,--input", kTokens,
      [&traffic](std::int64_t n) { traffic.input_tokens = n; }, "Tokens of each prompt (1024)")
      .group(kTrafficGroup)
      .excludes(trace);
  root.add_text("--output-tokens,--output", "INT", set_output, "Tokens of each answer (256)")
      .group(kTrafficGroup)
      .excludes(trace);
  add_count(
      root, "--requests", kCounts, [command](std::int64_t n) { command->requests = n; },
      "Requests to simulate (1000, or 10 per user if more)")
      .group(kTrafficGroup)
      .excludes(trace);
  add_count(
      root, "--seed", {0, std::int64_t{1} << 40U},
      [&traffic](std::int64_t n) { traffic.seed = static_cast<std::uint64_t>(n); },
      "Seed of the random times (1)")
      .group(kTrafficGroup);
}

void add_scheduler(Command root, const std::shared_ptr<ServeCommand>& command) {
  constexpr CountRange kSequences{1, 1'000'000};
  constexpr CountRange kBatchedTokens{1, 1'000'000};
  constexpr CountRange kBlockTokens{1, 65536};
  SchedulerLimits& limits = command->question.limits;
  add_count(
      root, "--max-sequences", kSequences, [&limits](std::int64_t n) { limits.max_sequences = n; },
      "Concurrent sequences per replica, vLLM's max_num_seqs (256)")
      .group(kSchedulerGroup);
  add_count(
      root, "--batched-tokens", kBatchedTokens,
      [&limits](std::int64_t n) { limits.batched_tokens = n; },
      "Tokens per step, vLLM's max_num_batched_tokens (2048)")
      .group(kSchedulerGroup);
  add_count(
      root, "--block-tokens", kBlockTokens, [&limits](std::int64_t n) { limits.block_tokens = n; },
      "Tokens of a block of the KV-cache (16)")
      .group(kSchedulerGroup);
  const Choices<Admission> admissions{{"prompt", Admission::prompt},
                                      {"request", Admission::request}};
  add_choice(root, "--admission", limits.admission, admissions,
             "Cache needed to start a request: for its prompt, as in vLLM, or its prompt and "
             "answer, as in TensorRT-LLM (prompt)")
      .group(kSchedulerGroup);
  const auto set_hit = [&limits](const std::string& text) {
    limits.prefix_hit = parse_positive("--prefix-hit", text, 1);
  };
  add_count(
      root, "--prefill-replicas", {0, 65536},
      [&limits](std::int64_t n) { limits.prefill_replicas = n; },
      "Replicas of --dp that only prefill; the others only decode (0: all do both)")
      .group(kSchedulerGroup);
  root.add_text("--prefix-hit", "FRACTION", set_hit,
                "Shared, cached prefix, as a fraction of the shortest prompt (0)")
      .group(kSchedulerGroup);
}

void add_speculation(Command root, const std::shared_ptr<ServeCommand>& command) {
  constexpr CountRange kDraftTokens{1, 64};
  const auto set_acceptance = [command](const std::string& text) {
    command->acceptance = parse_positive("--accept", text, 1);
  };
  root.add_text("--accept", "FRACTION", set_acceptance,
                "Probability that a proposed token is accepted, if those before it are; turns "
                "speculative decoding on")
      .group(kDraftGroup);
  const auto needs = [&](Option option) {
    command->needs_acceptance.push_back(option.group(kDraftGroup));
  };
  needs(root.add_text("--draft", "mtp|ngram|MODEL", command->drafter,
                      "Drafter: one more layer and the head (mtp), text that occurred before "
                      "(ngram), or a smaller model (mtp)"));
  needs(add_count(
      root, "--draft-tokens", kDraftTokens,
      [command](std::int64_t n) { command->draft_tokens = n; },
      "Tokens proposed per sequence and step (3)"));
}

void add_targets(Command root, const std::shared_ptr<ServeCommand>& command) {
  constexpr CountRange kDevices{1, 65536};
  constexpr double kHighestPercentile = 100;
  constexpr double kHighestPrice = 1e6;
  LatencyTargets& targets = command->question.targets;
  const auto add_target = [&](const std::string& name, std::optional<double>& target,
                              const char* description) {
    const auto set = [&target, name](const std::string& text) {
      target = parse_seconds(name, text);
    };
    root.add_text(name, "TIME", set, description).group(kTargetGroup);
  };
  add_target("--ttft", targets.ttft_s, "Target time to first token, such as 500ms");
  add_target("--tpot", targets.tpot_s, "Target time per further token, such as 30ms");
  add_target("--end-to-end", targets.end_to_end_s, "Target time per request, such as 10s");
  const auto set_percentile = [&targets](const std::string& text) {
    targets.percentile = parse_positive("--percentile", text, kHighestPercentile);
  };
  root.add_text("--percentile", "P", set_percentile,
                "Percentage of requests that must meet the targets (99)")
      .group(kTargetGroup);
  add_count(
      root, "--most-devices", kDevices, [command](std::int64_t n) { command->most_devices = n; },
      "Maximum devices to search, with targets and without --count (64)")
      .group(kTargetGroup);
  root.add_list(
          "--machines", "MACHINES", [command](const auto& words) { command->machines = words; },
          "Machines to compare by the fewest devices that meet the targets: names, parts of names, "
          "or files, such as h100,l40s, or all of the catalogue (all)")
      .group(kTargetGroup);
  const auto set_prices = [command](const std::vector<std::string>& words) {
    const bool by_name = words.size() > 1 || words.front().find('=') != std::string::npos;
    if (!by_name) {
      command->question.price_per_hour = parse_positive("--price", words.front(), kHighestPrice);
      return;
    }
    for (const std::string& word : words) add_price(word, command->hour_prices);
  };
  root.add_list("--price", "PRICE", set_prices,
                "Price per device-hour, in any currency; with --machines, by name, such as "
                "h100-80gb=2.50,l40s=0.80")
      .group(kTargetGroup);
}

/// Returns the option --count.
Option add_options(Command command, const std::shared_ptr<ServeCommand>& options) {
  Option count = add_serving_plan_options(command, options->options);
  add_traffic(command, options);
  add_scheduler(command, options);
  add_speculation(command, options);
  add_targets(command, options);
  // --output is the length of an answer here.
  add_output_options(command, options->options.output, "-o,--output-file");
  return count;
}

}  // namespace

namespace {

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
  (void)add_options(parser.root().add_command("serve", ""), command);
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
  const Option count = add_options(command, options);
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
      "Exit status: 1 if the targets are missed.");
  command.on_run([options, count, &status] {
    options->count_is_given = count.is_given();
    run_serve(*options, status);
  });
}

}  // namespace headroom::cli
