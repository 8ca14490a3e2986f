#include "serve_options.h"

#include <fmt/format.h>

#include <utility>

#include "device_choice.h"
#include "plan_option_values.h"

namespace headroom::cli {
namespace {

constexpr const char* kTrafficGroup = "Requests";
constexpr const char* kSchedulerGroup = "Scheduler";
constexpr const char* kDraftGroup = "Speculative decoding";
constexpr const char* kTargetGroup = "Targets";

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
  root.add_text("--output-tokens,--output", "N", set_output, "Tokens of each answer (256)")
      .group(kTrafficGroup)
      .excludes(trace);
  add_count(
      root, "--requests", kCounts, [command](std::int64_t n) { command->requests = n; },
      "Requests to simulate (1000, or 10 per user if more)")
      .group(kTrafficGroup)
      .excludes(trace);
  command->needs_chance.push_back(
      add_count(
          root, "--seed", {0, std::int64_t{1} << 40U},
          [&traffic](std::int64_t n) { traffic.seed = static_cast<std::uint64_t>(n); },
          "Seed of the random times and of accepted proposals (1)")
          .group(kTrafficGroup));
}

void add_scheduler(Command root, const std::shared_ptr<ServeCommand>& command) {
  constexpr CountRange kSequences{1, 1'000'000};
  constexpr CountRange kBatchedTokens{1, 1'000'000};
  constexpr CountRange kBlockTokens{1, 65536};
  SchedulerLimits& limits = command->question.limits;
  add_count(
      root, "--max-sequences", kSequences,
      [command](std::int64_t n) { command->max_sequences = n; },
      "Concurrent sequences per replica, vLLM's max_num_seqs (as vLLM on the device: 1024 from 70 "
      "GiB on but on an A100, else 256)")
      .group(kSchedulerGroup);
  add_count(
      root, "--batched-tokens", kBatchedTokens,
      [command](std::int64_t n) { command->batched_tokens = n; },
      "Tokens per step, vLLM's max_num_batched_tokens (likewise 8192 or 2048)")
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

void add_targets(Command root, const Option& count, const std::shared_ptr<ServeCommand>& command) {
  constexpr CountRange kMostSearched{1, 65536};
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
    if (targets.percentile < 1) {
      refuse_value("--percentile", fmt::format("takes a percentage such as 99, not \"{}\"", text));
    }
  };
  const auto needs = [&](Option option) {
    command->needs_targets.push_back(option.group(kTargetGroup));
  };
  needs(root.add_text("--percentile", "P", set_percentile,
                      "Percentage of requests that must meet the targets (99)"));
  const Choices<TargetSteps> steps{{"predicted", TargetSteps::predicted},
                                   {"slowest", TargetSteps::slowest}};
  needs(add_choice(root, "--targets-for", targets.steps, steps,
                   "Step times at which the targets must be met: as predicted, or the slowest of "
                   "nine of ten runs (predicted)"));
  Option most = add_count(
      root, "--most-devices", kMostSearched,
      [command](std::int64_t n) { command->most_devices = n; },
      "Maximum devices to search, with targets and without --count (64)");
  needs(most.excludes(count));
  root.add_list(
          "--machines", "MACHINES", [command](const auto& words) { command->machines = words; },
          "Machines to compare by the fewest devices that meet the targets: names, parts of names, "
          "or files, such as h100,l40s; all: the whole catalogue")
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

}  // namespace

Option add_serve_options(Command command, const std::shared_ptr<ServeCommand>& options) {
  Option count = add_serving_plan_options(command, options->options);
  add_traffic(command, options);
  add_scheduler(command, options);
  add_speculation(command, options);
  add_targets(command, count, options);
  // --output is the length of an answer here.
  add_output_options(command, options->options.output, "-o,--output-file");
  return count;
}

}  // namespace headroom::cli
