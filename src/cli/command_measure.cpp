// headroom measure MODEL: the forward pass on this machine, timed and counted.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "commands.h"
#include "headroom/error.h"
#include "interruption.h"
#include "measure_command.h"
#include "output.h"
#include "rank_runs.h"
#include "run_options.h"
#include "type_options.h"
#include "variations.h"
#include "waiting_threads.h"
#include "weight_words.h"

namespace headroom::cli {
namespace {

/// Measures every model and workload with `measure`, and writes one report, if this process does.
void measure_each(MeasureCommand& command, const std::function<Measured()>& measure, bool reports) {
  std::optional<ReportOutput> output;
  if (reports) output.emplace(command.output);
  detail::end_at_next_step();
  JoinedReports joined(format_of(command.output));
  std::vector<std::string> notes;
  bool interrupted = false;
  for_each_model(command.models, command.variations,
                 [&](const std::string& model, const VariedValues& varied) {
                   if (interrupted) return;
                   command.model = model;
                   const Measured one = measure();
                   interrupted = one.measurement.interrupted;
                   joined.add(
                       render(one.measurement, render_options(command.output, Detail::summary)),
                       varied);
                   add_new_notes(one.notes, notes);
                 });
  if (output) output->write(joined.text(), notes);
}

/// Throws for the first model that cannot run: those before it would run in vain.
void require_models(const MeasureCommand& command) {
  if (command.models.size() == 1) return;  // nothing runs before it is read
  for (const std::string& model : command.models) {
    measured::require_runnable(command.reading.load(model).spec);
  }
}

/// Throws Error{invalid_input} for two sources of inputs, and for two outputs in one file.
void refuse_clashing_files(const MeasureCommand& command) {
  if (!command.input.empty() && !command.tokens.empty()) {
    throw_invalid_input("--input and --token-ids both give the model's inputs",
                        "leave out one of them");
  }
  if (command.output.file.empty() || command.save_output.empty()) return;
  const auto whole = [](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file));
  };
  if (whole(command.output.file) != whole(command.save_output)) return;
  throw_invalid_input(fmt::format("--output and --save-output both write {}", command.save_output),
                      "give them different files");
}

void run_measure(MeasureCommand& command) {
  refuse_ignored_options(command.run, command.options.phase);
  // Opened before any thread starts, since they count later threads only.
  std::optional<measured::FloatCounters> counters;
  if (command.counters) command.options.counters = &counters.emplace();
  refuse_clashing_files(command);
  if (!command.input.empty() || !command.tokens.empty()) {
    refuse_given(command.sizes, "has no effect on inputs, which have their own sizes",
                 "leave it out");
    count_as_given({"batch", "seq", "enc-seq"});
  }
  if (command.models.size() > 1 && !command.save_output.empty()) {
    throw_invalid_input("--save-output writes the outputs of one model",
                        "measure the models one by one");
  }
  require_models(command);
  if (command.plan.devices() == 1) {
    require_one_process(command.plan, command.options);
    measure_each(
        command, [&] { return measure_one(command); }, true);
    return;
  }
  RankRun ranks(command.plan, command.options);
  ranks.run([&] {
    measure_each(
        command, [&] { return measure_on_ranks(command, ranks); }, ranks.reports());
  });
}

/// Refuses files, which --weights once took, with their own option.
void refuse_files_as_weights(const std::string& word) {
  const bool is_type = detail::weight_form_named(word).has_value();
  if (is_type || (word != "random" && !std::filesystem::exists(word))) return;
  throw_invalid_input("--weights takes a type; --checkpoint takes the files",
                      fmt::format("use --checkpoint {}", word));
}

void add_measure_options(Command app, MeasureCommand& command) {
  constexpr CountRange kWarmup{0, 1000};
  measured::MeasureOptions& options = command.options;
  add_count(
      app, "--warmup", kWarmup, [&](std::int64_t n) { options.warmup = static_cast<int>(n); },
      "Untimed runs before the first timed one (2)")
      .group("Run");
  add_count(
      app, "--seed", [&](std::int64_t n) { options.seed = static_cast<std::uint64_t>(n); },
      "Seed of random weights and inputs (1)")
      .group("Run");
  app.add_text("--checkpoint", "PATH|random", command.checkpoint,
               "Weights: a folder with safetensors, a GGUF file, or random (the model's own, else "
               "random)")
      .group("Run");
  const auto set_weights = [&](const std::string& word) {
    refuse_files_as_weights(word);
    command.request.weights = parse_weights("--weights", word, WeightUse::run);
  };
  app.add_text(
         "--weights", weight_choices(WeightUse::run), set_weights,
         "Type to hold weights in (quantised files as stored, others float32); types of fewer "
         "bits are for random weights, FORMAT is one in groups such as fp8-128x128-s32")
      .group("Run");
  const Choices<measured::ActivationPath> paths{{"float32", measured::ActivationPath::float32},
                                                {"int8", measured::ActivationPath::int8},
                                                {"bfloat16", measured::ActivationPath::bfloat16}};
  add_choice(
      app, "--activations", command.activations, paths,
      "Type of activations in products: float32 or int8 with quantised weights (int8 in blocks, "
      "float32 in safetensors), float32 or bfloat16 with --weights bfloat16 (float32)")
      .group("Run");
  add_activation_type_option(app, command.request.dtype,
                             "Type of activations (float32, the only one)");
  app.add_text("--input", "FILE", command.input,
               "Inputs: a JSON file of tokens, or safetensors of pixels")
      .group("Run");
  const auto set_tokens = [&](const std::vector<std::string>& words) {
    for (const std::string& word : words)
      command.tokens.push_back(parse_count("--token-ids", word));
  };
  app.add_list("--token-ids", "ID", set_tokens, "Token ids of one sequence, separated by commas")
      .group("Run");
  app.add_text("--save-output", "FILE", command.save_output,
               "Write the outputs of the measured phase as safetensors")
      .group("Run");
  app.add_flag("--counters", command.counters,
               "Show the floating-point operations that the processor's own counters retired, "
               "where the system permits it")
      .group("Run");
  command.run.generate_only.push_back(
      app.add_flag("--show-tokens", command.show_tokens, "Show the ids of the generated tokens")
          .group("Run"));
}

}  // namespace

void add_measure(Command root) {
  auto options = std::make_shared<MeasureCommand>();
  Command command = root.add_command("measure", "Run the real forward pass, timed and counted");
  add_models_argument(command, options->models);
  add_reading_options(command, options->reading);
  options->sizes =
      add_inference_options(command, options->request, options->variations, ModelUse::run).sizes;
  options->run = add_run_options(command, options->options, options->variations);
  add_measure_options(command, *options);
  add_rank_options(command, options->plan, options->options);
  add_output_options(command, options->output, "--output,-o", TraceFormat::offered);
  command.set_footer(
      "Examples:\n"
      "  headroom measure bert-base\n"
      "  headroom measure bert-base gpt2 --threads 1,2 --seq 128,512\n"
      "  headroom measure gpt2 --phase decode --past 255 --threads 1\n"
      "  headroom measure gpt2 --phase generate --seq 64 --new-tokens 32\n"
      "  headroom measure ./my-model --input inputs.json --save-output out.safetensors\n"
      "  mpirun -n 4 headroom measure gpt2 --tp 2 --pp 2");
  command.on_run([options] {
    prepare_threads(options->options.threads);
    run_measure(*options);
  });
}

}  // namespace headroom::cli
