// headroom complexity LAYER…: how cost grows with the length of a sequence, derived and measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.h"
#include "complexity_command.h"
#include "headroom/error.h"
#include "headroom/render_study.h"
#include "run_options.h"
#include "sweep_axis.h"

namespace headroom::cli {
namespace {

/// What some study has no use for.
void require_fitting_options(const ComplexityCommand& command) {
  const bool generates = command.study == Study::generation;
  const auto only = [&](bool given, bool fits, const char* option) {
    if (!given || fits) return;
    throw_invalid_input(
        fmt::format("{} means nothing in --study {}", option, name_of(command.study)),
        fmt::format("leave out {}", option));
  };
  only(!command.lengths.empty(), !generates, "--seq");
  only(!command.new_tokens.empty(), generates, "--new-tokens");
  only(command.prompt.has_value(), generates, "--prompt");
  only(command.attention.has_value(), !generates, "--attention");
  if (command.study != Study::layers && command.layers.size() > 1) {
    throw_invalid_input(fmt::format("--study {} is of one model", name_of(command.study)),
                        "name one, or leave out --study");
  }
}

void run(const ComplexityCommand& command) {
  require_fitting_options(command);
  const RenderOptions options = render_options(command.output, Detail::summary);
  const auto write = [&](const auto& report, const std::vector<std::string>& notes) {
    write_output(render(report, options), notes, command.output);
  };
  switch (command.study) {
    case Study::layers: {
      const ComplexityReport report = study_layers(command);
      return write(report, report.notes);
    }
    case Study::associativity: {
      const AssociativityReport report = study_associativity(command);
      return write(report, report.layers.notes);
    }
    case Study::generation: {
      const GenerationReport report = study_generation(command);
      return write(report, report.notes);
    }
    case Study::shares:
      break;
  }
  const SharesReport report = study_shares(command);
  write(report, report.notes);
}

/// "64..16384" doubles; everything else is an axis as of `sweep`.
std::vector<std::int64_t> parse_lengths(const std::string& option, const std::string& text) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 30;
  const bool doubles =
      text.find("..") != std::string::npos && text.find_first_of(":,") == std::string::npos;
  std::vector<std::int64_t> lengths = parse_axis(option, doubles ? text + ":x2" : text);
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  if (lengths.empty() || lengths.front() < 1 || lengths.back() > kLongest) {
    throw CLI::ValidationError(option, fmt::format("takes 1 to {}", kLongest));
  }
  return lengths;
}

void add_lengths(CLI::App& app, const char* option, std::vector<std::int64_t>& lengths,
                 const char* description) {
  const std::string name = std::string(option).substr(0, std::string_view(option).find(','));
  app.add_option_function<std::string>(
         option, [&lengths, name](const std::string& text) { lengths = parse_lengths(name, text); },
         description)
      ->type_name("LENGTHS")
      ->group("Workload");
}

void add_study_options(CLI::App& app, ComplexityCommand& command) {
  add_choice<Study>(app, "--study", command.study,
                    {{"layers", Study::layers},
                     {"associativity", Study::associativity},
                     {"generation", Study::generation},
                     {"shares", Study::shares}},
                    "What grows: layers beside each other; (QKᵀ)V against Q(KᵀV); generating with "
                    "and without a KV-cache; shares of a model's operators (layers)");
  add_lengths(app, "--seq,-s", command.lengths,
              "Positions: a range that doubles, or a list (64..16384; 128..32768 in shares)");
  add_lengths(app, "--new-tokens", command.new_tokens, "Tokens to generate, likewise (16..256)");
  constexpr CountRange kPrompt{1, std::int64_t{1} << 30};
  add_count(
      app, "--prompt", kPrompt, [&](std::int64_t n) { command.prompt = n; },
      "Tokens before the generated ones (1)")
      ->group("Workload");
  add_choice<AttentionImplementation>(
      app, "--attention", command.attention,
      {{"eager", AttentionImplementation::eager}, {"fused", AttentionImplementation::fused}},
      "How attention is computed (eager; fused where there are windows)")
      ->group("Workload");
}

void add_measure_options(CLI::App& app, ComplexityCommand& command) {
  RunPlan& plan = command.plan;
  app.add_flag("--measure", command.measures, "Run all of it on this machine as well")
      ->group("Run");
  add_count(
      app, "--threads", kThreads, [&](std::int64_t n) { plan.threads = static_cast<int>(n); },
      "Threads (the most there are)")
      ->group("Run");
  constexpr CountRange kRounds{1, 10'000};
  add_count(
      app, "--runs", kRounds, [&](std::int64_t n) { plan.rounds = static_cast<int>(n); },
      "Rounds over all lengths; the fastest run counts (3)")
      ->group("Run");
  add_count(
      app, "--most-seconds", CountRange{1, 86'400},
      [&](std::int64_t n) { plan.most_seconds = static_cast<double>(n); },
      "What may take longer is not run (5)")
      ->group("Run");
  add_backend_option(app, plan.backend)->group("Run");
  app.add_option("--machine", command.machine,
                 "That times are predicted for: here, a name of `headroom machines`, or a file "
                 "(here with --measure, where it is calibrated)")
      ->type_name("MACHINE")
      ->group("Run");
}

}  // namespace

void add_complexity(CLI::App& app) {
  auto command = std::make_shared<ComplexityCommand>();
  CLI::App* complexity = app.add_subcommand(
      "complexity", "Show how cost grows with the length of a sequence, and why");
  complexity
      ->add_option("layers", command->layers,
                   "Layers or models: presets, config.json files, or folders")
      ->type_name("LAYER")
      ->required();
  add_study_options(*complexity, *command);
  add_measure_options(*complexity, *command);
  add_output_options(*complexity, command->output);
  complexity->footer(
      "Examples:\n"
      "  headroom complexity layer-self-attention layer-rnn layer-conv layer-window-attention\n"
      "  headroom complexity layer-self-attention layer-linear-attention --seq 64..8192 --measure\n"
      "  headroom complexity layer-multi-head-attention --study associativity\n"
      "  headroom complexity gpt2 --study generation --new-tokens 16..512\n"
      "  headroom complexity bert-base --study shares --seq 128..32768");
  complexity->callback([command] { run(*command); });
}

}  // namespace headroom::cli
