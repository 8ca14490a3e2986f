// headroom explain MODEL: the formula of a figure, the formula with numbers, the result.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "commands.h"
#include "counted_run.h"
#include "efficiency_options.h"
#include "headroom/claim.h"
#include "headroom/crossover.h"
#include "headroom/derivation.h"
#include "headroom/error.h"
#include "model_reading.h"
#include "options.h"
#include "output.h"
#include "own_machine.h"
#include "variations.h"

namespace headroom::cli {
namespace {

struct ExplainOptions {
  std::optional<Integer> claim;
  WorkloadRequest request;
  KvCacheRequest kv_cache;
  std::string model;
  Variations variations;
  ModelReading reading;
  std::string machine;
  OutputOptions output;
  std::optional<std::int64_t> new_tokens;
  std::vector<Option> figure_only;  ///< that choose a figure, or another report on it
  std::vector<Option> new_tokens_only;
  Subject subject = Subject::flops;
  bool steps = false;
  bool measured = false;
  bool crossovers = false;
};

/// Most digits of a claim: products of a claim and its unit stay within 127 bits.
constexpr std::size_t kMostClaimDigits = 27;

/// Parses digits, with or without separators: "37,578,559,488".
Integer parse_claim(const std::string& names, const std::string& word) {
  Integer value = 0;
  std::size_t digits = 0;
  for (const char letter : word) {
    if (letter == ',' || letter == '_') continue;
    if (letter < '0' || letter > '9' || ++digits > kMostClaimDigits) {
      refuse_value(names, fmt::format("must be a whole number of at most {} digits, not \"{}\"",
                                      kMostClaimDigits, word));
    }
    value = 10 * value + (letter - '0');
  }
  if (value < 1)
    refuse_value(names, fmt::format("must be a whole number above 0, not \"{}\"", word));
  return value;
}

/// A rendered report and its notes.
struct Explained {
  std::string text;
  std::vector<std::string> notes;
};

template <class Report>
Explained explained(const Report& report, const ExplainOptions& options) {
  return {render(report, render_options(options.output, Detail::summary)), report.notes};
}

Explained run_claim(const ExplainOptions& options, int& status) {
  const ClaimReport report = explain_claim(options.reading.load(options.model), options.request,
                                           options.subject, *options.claim, options.kv_cache);
  if (report.explanations.empty()) status = 1;
  return explained(report, options);
}

Explained run_steps(const ExplainOptions& options) {
  Derivation derivation = make_derivation(options.reading.load(options.model), options.request,
                                          options.subject, options.kv_cache);
  if (options.measured) {
    if (derivation.workload.phase == Phase::train) {
      throw_invalid_input("headroom runs no training steps, so --measured has nothing to count",
                          "leave out --measured, or choose --phase prefill or decode");
    }
    add_measurement(derivation, run_once(derivation.model, derivation.workload));
  }
  return explained(derivation, options);
}

Explained run_crossovers(const ExplainOptions& options) {
  std::optional<MachineProfile> machine;
  if (!options.machine.empty()) machine = catalogue_machine(options.machine);
  const Model model = options.reading.load(options.model);
  WorkloadRequest request = options.request;
  if (!request.attention) request.attention = attention_on(machine, model.spec);
  const CrossoverReport report =
      make_crossover_report(model, request, machine ? &*machine : nullptr, options.kv_cache);
  return explained(report, options);
}

/// Throws Error{invalid_input} for a policy or scales of the KV-cache that the report does not
/// show.
void refuse_unread_policy(const ExplainOptions& options) {
  if (!asks_for_policy(options.kv_cache) || options.crossovers) return;
  const auto refuse = [](const std::string& report, const char* hint) {
    throw_invalid_input(
        fmt::format("the policy and the scales of a KV-cache have no effect on {}", report), hint);
  };
  if (options.subject != Subject::kv) {
    refuse(fmt::format("--what {}", name_of(options.subject)),
           "choose --what kv, or leave them out");
  }
  if (options.claim) refuse("--claim", "leave out one of them");
  if (options.steps || options.measured) {
    refuse(options.steps ? "--steps" : "--measured", "leave out one of them");
  }
}

/// Throws Error{invalid_input} for options that the report asked for does not read.
void refuse_options_without_effect(const ExplainOptions& options) {
  if (options.crossovers) {
    refuse_given(options.figure_only,
                 "has no effect on --crossovers, which compares costs of its own",
                 "leave out one of them");
  }
  const bool other = options.claim || options.steps || options.measured;
  if (!other) return;
  const char* const report = options.claim ? "--claim" : options.steps ? "--steps" : "--measured";
  refuse_given(options.new_tokens_only,
               fmt::format("has no effect on {}, which is about the cache of this pass", report),
               "leave out one of them");
}

Explained explain_once(const ExplainOptions& options, int& status) {
  if (!options.crossovers && !options.machine.empty()) {
    throw_invalid_input("--machine applies only to --crossovers",
                        "add --crossovers, or leave it out");
  }
  refuse_options_without_effect(options);
  refuse_unread_policy(options);
  if (options.crossovers) return run_crossovers(options);
  if (options.claim) return run_claim(options, status);
  if (options.steps || options.measured) return run_steps(options);
  const ExplainReport report =
      make_explain_report(options.reading.load(options.model), options.request, options.subject,
                          options.kv_cache, options.new_tokens);
  return explained(report, options);
}

void run_explain(const ExplainOptions& options, int& status) {
  ReportOutput output(options.output);
  JoinedReports reports(format_of(options.output));
  std::vector<std::string> notes;
  options.variations.for_each([&](const VariedValues& varied) {
    const Explained one = explain_once(options, status);
    reports.add(one.text, varied);
    add_new_notes(one.notes, notes);
  });
  output.write(reports.text(), notes);
}

}  // namespace

void add_explain(Command root, int& status) {
  auto options = std::make_shared<ExplainOptions>();
  Command command = root.add_command("explain", "Derive a figure from its formula");
  add_model_argument(command, options->model);
  add_reading_options(command, options->reading);
  const Choices<Subject> subjects{
      {"flops", Subject::flops},   {"elementwise", Subject::elementwise},
      {"params", Subject::params}, {"activations", Subject::activations},
      {"kv", Subject::kv},         {"training", Subject::training},
      {"states", Subject::states}};
  const Option what =
      add_choice(command, "--what,-w", options->subject, subjects, "Figure to explain (flops)");
  const Option steps = command.add_flag(
      "--steps", options->steps, "Derive step by step: shapes, product, count, subtotals, total");
  const Option measured =
      command.add_flag("--measured", options->measured,
                       "Also run the model once and show its counts beside the steps");
  const char* const claim = "--claim";
  Option claimed = command.add_text(
      claim, "N",
      [options, claim](const std::string& word) { options->claim = parse_claim(claim, word); },
      "Explain another tool's figure as headroom's plus or minus named terms");
  claimed.excludes(steps).excludes(measured);
  command
      .add_flag("--crossovers", options->crossovers,
                "List the lengths and batches at which one cost overtakes another")
      .excludes(steps)
      .excludes(measured);
  command.add_text(
      "--machine", "MACHINE", [options](const std::string& name) { options->machine = name; },
      "With --crossovers: adds the batch at which a decode step becomes compute-bound");
  const Option new_tokens = add_count(
      command, "--new-tokens", kNewTokens,
      [options](std::int64_t count) { options->new_tokens = count; },
      "With --what kv: adds the cache after generating N tokens");
  options->figure_only = {what, claimed, new_tokens};
  options->new_tokens_only = {new_tokens};
  const Option phase =
      add_workload_options(command, options->request, options->kv_cache, options->variations);
  options->figure_only.push_back(phase);
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom explain bert-base\n"
      "  headroom explain bert-base --steps\n"
      "  headroom explain gpt2 --what params --claim 163009536\n"
      "  headroom explain gpt2 --what params\n"
      "  headroom explain gpt2 --what activations --phase train --dtype bf16\n"
      "  headroom explain llama-3-8b --what kv --seq 8192 --dtype bf16\n"
      "  headroom explain llama-3-8b --what kv --seq 8192 --kv-dtype int4 --kv-scales group");
  command.on_run([options, &status] { run_explain(*options, status); });
}

}  // namespace headroom::cli
