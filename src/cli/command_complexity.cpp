// headroom complexity LAYER…: growth of cost with sequence length, derived and measured.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "complexity_command.h"
#include "headroom/error.h"
#include "output.h"
#include "run_options.h"
#include "sweep_axis.h"
#include "user_settings.h"
#include "waiting_threads.h"

namespace headroom::cli {
namespace {

constexpr std::int64_t kLongestStudied = std::int64_t{1} << 30;

/// Throws Error{invalid_input} for an option that the study does not use.
void require_used_options(const ComplexityCommand& command) {
  const bool generates = command.study == Study::generation;
  const auto require = [&](bool given, bool used, const char* option) {
    if (!given || used) return;
    throw_invalid_input(
        fmt::format("{} has no effect with --study {}", option, name_of(command.study)),
        fmt::format("leave out {}", option));
  };
  require(!command.lengths.empty(), !generates, "--seq");
  require(!command.new_tokens.empty(), generates, "--new-tokens");
  require(command.prompt.has_value(), generates, "--prompt");
  require(command.enc_seq_len.has_value(), generates, "--enc-seq");
  require(command.attention.has_value(), !generates, "--attention");
  if (command.study != Study::layers && command.layers.size() > 1) {
    throw_invalid_input(fmt::format("--study {} takes one model", name_of(command.study)),
                        "name one model, or leave out --study");
  }
}

/// Throws Error{invalid_input} for options of measured runs without any.
void refuse_unmeasured_options(const ComplexityCommand& command) {
  if (command.measures) return;
  refuse_given(command.run_only, "applies only to measured runs", "leave it out, or add --measure");
  if (!command.machine.empty()) return;
  refuse_given(command.processor_only, "applies only to measured runs and predicted times",
               "leave it out, or add --measure or --machine here");
}

void run_complexity(ComplexityCommand& command) {
  require_used_options(command);
  refuse_unmeasured_options(command);
  if (command.measures) {
    prepare_threads(command.plan.threads);
    fill_in_threads(command.plan.threads);
  }
  // A generation has no lengths but its prompt's, and sums the costs of eager attention.
  if (command.study == Study::generation) {
    count_as_given({"seq", "attention"});
  } else {
    count_as_given({"prompt", "enc-seq"});
  }
  const RenderOptions options = render_options(command.output, Detail::summary);
  ReportOutput output(command.output);
  const auto write = [&](const auto& report, const std::vector<std::string>& notes) {
    output.write(render(report, options), notes);
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

/// "64..16384" doubles; other text is an axis as in `headroom sweep`.
std::vector<std::int64_t> parse_lengths(const std::string& names, const std::string& text) {
  const bool doubles =
      text.find("..") != std::string::npos && text.find_first_of(":,") == std::string::npos;
  std::vector<std::int64_t> lengths = parse_axis(names, doubles ? text + ":x2" : text);
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  if (lengths.empty() || lengths.front() < 1 || lengths.back() > kLongestStudied) {
    refuse_value(names, fmt::format("lengths must be from 1 to {}", kLongestStudied));
  }
  return lengths;
}

void add_lengths(Command app, const std::string& names, std::vector<std::int64_t>& lengths,
                 const char* description) {
  const auto set = [&lengths, names](const std::string& text) {
    lengths = parse_lengths(names, text);
  };
  app.add_text(names, "LENGTHS", set, description).group("Workload");
}

void add_study_options(Command app, ComplexityCommand& command) {
  const Choices<Study> studies{{"layers", Study::layers},
                               {"associativity", Study::associativity},
                               {"generation", Study::generation},
                               {"shares", Study::shares}};
  add_choice(app, "--study", command.study, studies,
             "layers side by side; associativity: (queries·keysᵀ)·values against "
             "queries·(keysᵀ·values); generation with and "
             "without a KV-cache; shares of a model's parts (layers)");
  add_lengths(app, "--seq,-s", command.lengths,
              "Sequence lengths: a doubling range, or a list (64..16384; 128..32768 in shares)");
  add_lengths(app, "--new-tokens", command.new_tokens,
              "Numbers of tokens to generate: a range or list (16..256)");
  add_count(
      app, "--prompt", {1, kLongestStudied}, [&](std::int64_t n) { command.prompt = n; },
      "Tokens of the prompt (1)")
      .group("Workload");
  add_count(
      app, "--enc-seq", {1, kLongestStudied}, [&](std::int64_t n) { command.enc_seq_len = n; },
      "generation: tokens of an encoder-decoder's encoder input (128; speech: the whole trained "
      "window)")
      .group("Workload");
  add_choice(app, "--attention", command.attention, attention_choices(),
             "Attention implementation (eager; fused for windows)")
      .group("Workload");
}

void add_study_run_options(Command app, ComplexityCommand& command) {
  constexpr CountRange kRounds{1, 10'000};
  constexpr CountRange kSeconds{1, 86'400};
  RunPlan& plan = command.plan;
  app.add_flag("--measure", command.measures, "Measure the runs on this machine").group("Run");
  const auto add = [&](const char* name, CountRange range, const SetCount& set, const char* text) {
    return add_count(app, name, range, set, text).group("Run");
  };
  command.processor_only.push_back(add(
      "--threads", kThreads, [&](std::int64_t n) { plan.threads = static_cast<int>(n); },
      "Threads (all processors)"));
  command.run_only = {
      add(
          "--runs", kRounds, [&](std::int64_t n) { plan.rounds = static_cast<int>(n); },
          "Rounds over all lengths; the fastest run counts (3)"),
      add(
          "--most-seconds", kSeconds,
          [&](std::int64_t n) { plan.most_seconds = static_cast<double>(n); },
          "Skip runs that may take longer (5)")};
  command.processor_only.push_back(add_backend_option(app, plan.backend).group("Run"));
  app.add_text("--machine", "MACHINE", command.machine,
               "Predict times for: here, a name of `headroom machines`, or a file (here with "
               "--measure, if it is calibrated)")
      .group("Run");
}

}  // namespace

void add_complexity(Command root) {
  auto options = std::make_shared<ComplexityCommand>();
  Command command =
      root.add_command("complexity", "Show how cost grows with sequence length, and why");
  command.add_arguments("layers", "LAYER", options->layers, 0,
                        "Layers or models: presets, config.json files, or folders");
  add_reading_options(command, options->reading);
  add_study_options(command, *options);
  add_study_run_options(command, *options);
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom complexity layer-self-attention layer-rnn layer-conv layer-window-attention\n"
      "  headroom complexity layer-self-attention layer-linear-attention --seq 64..8192 --measure\n"
      "  headroom complexity layer-multi-head-attention --study associativity\n"
      "  headroom complexity gpt2 --study generation --new-tokens 16..512\n"
      "  headroom complexity t5-base --study generation --enc-seq 512\n"
      "  headroom complexity bert-base --study shares --seq 128..32768");
  command.on_run([options] { run_complexity(*options); });
}

}  // namespace headroom::cli
