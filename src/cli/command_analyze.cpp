// headroom analyze MODEL: parameters, FLOPs, memory and KV-cache on one screen.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "backend_option.h"
#include "commands.h"
#include "efficiency_options.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "headroom/predict.h"
#include "model_reading.h"
#include "output.h"
#include "user_settings.h"
#include "variations.h"

namespace headroom::cli {
namespace {

struct AnalyzeOptions {
  std::vector<std::string> models;
  std::string model;  ///< of them, the one that is reported
  Variations variations;
  ModelReading reading;
  WorkloadRequest request;
  KvCacheRequest kv_cache;
  Convention convention = Convention::headroom;
  std::string machine;
  GivenEfficiency efficiency;
  measured::Backend backend = measured::Backend::eigen;
  TimeRequest time;
  std::vector<Option> machine_only;
  bool detail = false;
  OutputOptions output;
};

/// Parameters and bytes know neither a time nor a cache's policy.
void refuse_beyond_files(const AnalyzeOptions& options) {
  const std::array<std::pair<bool, const char*>, 4> beyond{{
      {!options.machine.empty(), "--machine"},
      {options.time.new_tokens > 0, "--new-tokens"},
      {options.request.phase == Phase::train, "--phase train"},
      {asks_for_policy(options.kv_cache), "a policy of the KV-cache"},
  }};
  for (const auto& [given, option] : beyond) {
    if (!given) continue;
    throw Error(ErrorCode::invalid_input,
                fmt::format("the architecture is unknown: {} needs a known one", option),
                options.model, "leave it out: parameters and bytes are counted from the files");
  }
}

void refuse_without_machine(const AnalyzeOptions& options) {
  if (!options.machine.empty()) return;
  refuse_given(options.machine_only, "applies only to a predicted time",
               "leave it out, or add --machine here");
}

/// Throws Error{invalid_input} for options of a processor's profile with a machine of rates.
void refuse_unmeasured(const AnalyzeOptions& options, const MachineProfile& machine) {
  if (std::holds_alternative<MeasuredRates>(machine.rates)) return;
  refuse_given(options.machine_only,
               fmt::format("has no effect on {}, which no calibration measured", machine.name),
               "leave it out");
}

/// A rendered report and its notes.
struct Rendered {
  std::string text;
  std::vector<std::string> notes;
};

/// The report of a model of an unknown architecture by its files; empty for any other.
std::optional<Rendered> analyze_files(const AnalyzeOptions& options) {
  if (options.reading.strict) return std::nullopt;
  const auto unknown = read_unknown_model(options.model, options.request);
  if (!unknown) return std::nullopt;
  refuse_beyond_files(options);
  refuse_without_machine(options);
  const Detail detail = options.detail ? Detail::operators : Detail::summary;
  return Rendered{render(*unknown, render_options(options.output, detail)), unknown->notes};
}

Rendered analyze_one(AnalyzeOptions options) {
  if (auto unknown = analyze_files(options)) return *std::move(unknown);
  fill_in_machine(options.machine);
  refuse_without_machine(options);
  const Detail detail = options.detail ? Detail::operators : Detail::summary;
  const auto machine = machine_with(options.machine, options.backend, options.efficiency);
  if (machine) refuse_unmeasured(options, *machine);
  WorkloadRequest request = options.request;
  Model model = options.reading.load(options.model);
  if (options.time.new_tokens > 0) {
    require_generates(model.spec);
    request = prompt_request(request);
  }
  if (!request.attention) request.attention = attention_on(machine, model.spec);
  AnalyzeReport report =
      make_analyze_report(std::move(model), request, options.convention, options.kv_cache);
  if (options.time.new_tokens > 0) {
    add_generation(report, options.kv_cache, options.time.new_tokens);
  }
  if (machine) {
    TimeRequest time = options.time;
    if (time.new_tokens > 0) time.phase = MeasuredPhase::generate;
    time.opaque_layout = options.backend == measured::Backend::onednn;
    add_prediction(report, *machine, time);
  }
  return {render(report, render_options(options.output, detail)), report.notes};
}

void run_analyze(AnalyzeOptions& options) {
  ReportOutput output(options.output);
  JoinedReports reports(format_of(options.output));
  std::vector<std::string> notes;
  for_each_model(options.models, options.variations,
                 [&](const std::string& model, const VariedValues& varied) {
                   options.model = model;
                   const Rendered one = analyze_one(options);
                   reports.add(one.text, varied);
                   add_new_notes(one.notes, notes);
                 });
  output.write(reports.text(), notes);
}

void add_time_options(Command command, AnalyzeOptions& options) {
  command
      .add_text("--machine", "MACHINE", options.machine,
                "Predict the time on: here, a name of `headroom machines`, or a file")
      .group("Time");
  options.machine_only.push_back(
      add_count(
          command, "--threads", kThreads,
          [&](std::int64_t n) { options.time.threads = static_cast<int>(n); },
          "Threads of that machine (the most it was calibrated with)")
          .group("Time"));
  add_count(
      command, "--new-tokens", kNewTokens, [&](std::int64_t n) { options.time.new_tokens = n; },
      "Generate N tokens after the prompt: adds the KV-cache at its end and, on a machine, "
      "TTFT and TPOT")
      .group("Time");
  add_device_efficiencies(command, options.efficiency, "Time");
  options.machine_only.push_back(add_backend_option(command, options.backend).group("Time"));
}

Choices<Convention> convention_choices() {
  Choices<Convention> choices;
  for (const ConventionInfo& convention : conventions()) {
    choices.emplace_back(convention.name, convention.convention);
  }
  return choices;
}

}  // namespace

void add_analyze(Command root) {
  auto options = std::make_shared<AnalyzeOptions>();
  Command command = root.add_command("analyze", "Count parameters, FLOPs, memory and KV-cache");
  add_models_argument(command, options->models);
  add_reading_options(command, options->reading);
  add_workload_options(command, options->request, options->kv_cache, options->variations);
  add_choice(command, "--convention", options->convention, convention_choices(),
             "FLOP counting convention (headroom)");
  add_time_options(command, *options);
  command.add_flag("--detail,-d", options->detail, "List operators instead of components");
  add_output_options(command, options->output, "--output,-o", TraceFormat::offered);
  command.set_footer(
      "Examples:\n"
      "  headroom analyze bert-base\n"
      "  headroom analyze gpt2 gpt2-xl --seq 128,1K --batch 1..64:x8\n"
      "  headroom analyze llama-3-8b --seq 8192 --dtype bf16\n"
      "  headroom analyze gpt2 --phase decode --past 1023 --batch 16\n"
      "  headroom analyze t5-base --enc-seq 512 --seq 64 --attention fused\n"
      "  headroom analyze gpt-oss-20b --phase decode --past 32767 --kv-policy vllm --kv-dtype fp8\n"
      "  headroom analyze model-Q4_K_M.gguf --seq 4096\n"
      "  headroom analyze flux.1-dev --image-size 1024x768\n"
      "  headroom analyze ./my-model/config.json --phase train --recompute selective\n"
      "  headroom analyze ./folder-of-an-unknown-architecture --format json\n"
      "  headroom analyze llama-3-8b --dtype bf16 --machine h100-80gb --new-tokens 128\n"
      "  headroom analyze bert-large --format json -o bert-large.json");
  command.on_run([options] { run_analyze(*options); });
}

}  // namespace headroom::cli
