// Runs of `headroom measure`: weights and inputs of a command, its workload, and the measurement.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "gguf.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "interruption.h"
#include "measure_command.h"
#include "measured_weights.h"
#include "output.h"
#include "own_machine.h"
#include "progress.h"
#include "quantization/group_format.h"
#include "safetensors_writer.h"
#include "saved_run.h"
#include "session.h"
#include "setting_options.h"
#include "type_options.h"
#include "user_settings.h"
#include "weight_reader.h"

namespace headroom::cli {
namespace {

namespace fs = std::filesystem;

/// File or folder of the weights: by default the model's own. Empty for random ones.
fs::path weight_files(const MeasureCommand& command, const Model& model) {
  if (command.checkpoint == "random") return {};
  return command.checkpoint.empty() ? model.weight_files : command.checkpoint;
}

void require_vocabulary(const ModelSpec& spec) {
  if (spec.embedding.audio) {
    throw_invalid_input(
        fmt::format("the encoder of {} reads sound, and --token-ids gives none", spec.name),
        "leave out --token-ids, or give input_features and decoder_input_ids with --input");
  }
  if (spec.embedding.vocab_size > 0) return;
  throw_invalid_input(fmt::format("{} reads no tokens, so --token-ids has no effect", spec.name),
                      "leave out --token-ids, or give the model's inputs with --input");
}

measured::InputFile read_input(const MeasureCommand& command, const ModelSpec& spec) {
  measured::InputFile file;
  if (!command.input.empty()) return measured::read_inputs(command.input, spec);
  if (command.tokens.empty()) return file;
  require_vocabulary(spec);
  for (const std::int64_t id : command.tokens) {
    if (id >= 0 && id < spec.embedding.vocab_size) continue;
    throw Error(ErrorCode::invalid_input,
                fmt::format("--token-ids {} is outside the vocabulary, 0 to {}", id,
                            spec.embedding.vocab_size - 1));
  }
  measured::require_text_tokens(command.tokens, spec, "--token-ids");
  file.inputs.main = {1, static_cast<std::int64_t>(command.tokens.size()), command.tokens, {}, {}};
  if (const auto& global = spec.main_stack().self_attention.global) {
    measured::add_default_global_mask(*global, file.inputs.main);
  }
  if (spec.kind == ModelKind::encoder_decoder) file.inputs.encoder = file.inputs.main;
  return file;
}

/// The requested workload, with the sizes of the input file or tokens if there are any.
Workload workload_of_inputs(const MeasureCommand& command, const ModelSpec& spec,
                            const measured::InputFile& file) {
  WorkloadRequest request = command.request;
  const measured::TokenInputs& main = file.inputs.main;
  if (main.batch > 0) {
    request.batch_size = main.batch;
    request.seq_len = main.seq_len;
    if (spec.main_stack().self_attention.global) {
      request.global_tokens = measured::most_global_tokens(main);
    }
    const bool encodes = file.inputs.encoder && spec.reads_two_sequences();
    if (encodes) request.enc_seq_len = file.inputs.encoder->seq_len;
  }
  Workload workload = workload_of_run(request, command.options.phase, spec);
  if (file.inputs.images) workload.images = measured::images_of(spec, file.inputs);
  if (file.inputs.encoder) workload.enc_seq_len = file.inputs.encoder->seq_len;
  if (file.inputs.audio) workload.audio = measured::audio_of(spec, file.inputs);
  return workload;
}

/// The file of --save-output, opened before the work; empty without that option.
std::optional<detail::OutputFile> open_saved(const MeasureCommand& command) {
  if (command.save_output.empty()) return std::nullopt;
  return detail::OutputFile(command.save_output);
}

/// Throws unless bfloat16 activations have bfloat16 weights, and instructions.
void require_bfloat16_products(const MeasureCommand& command, const Workload& workload) {
  if (workload.weights != WeightForm(WeightType::bfloat16)) {
    throw_invalid_input("bfloat16 activations multiply bfloat16 weights only",
                        "use --weights bfloat16");
  }
  if (measured::has_bfloat16_products(command.options.backend)) return;
  throw Error(ErrorCode::missing_resource,
              fmt::format("the {} backend has no products of bfloat16 on this processor",
                          name_of(command.options.backend)),
              {},
              "leave out --activations, or use --backend onednn on a processor with AVX512-BF16");
}

/// Name of the type that plain weights are held in.
std::string held_type(const Workload& workload) {
  return name_of(workload.weights.value_or(WeightType::float32));
}

/// Refuses `path` for weights that are not quantised.
[[noreturn]] void throw_without_choice(measured::ActivationPath path, const Workload& workload) {
  const std::string held = held_type(workload);
  if (path == measured::ActivationPath::int8) {
    throw_invalid_input(
        fmt::format("int8 activations multiply quantised weights only, and these are held as {}",
                    held),
        "leave out --activations, or use a GGUF file, quantised safetensors or --weights q8_0");
  }
  throw_invalid_input(fmt::format("--activations does not apply to weights held as {}", held),
                      "leave it out");
}

/// Chooses the type of the activations that the weights of `spec`, in this form, are multiplied
/// with.
void choose_activations(MeasureCommand& command, const Workload& workload, StoredWeights stored,
                        const ModelSpec& spec) {
  using measured::ActivationPath;
  if (command.activations == ActivationPath::bfloat16) {
    require_bfloat16_products(command, workload);
    command.options.activations = ActivationPath::bfloat16;
    return;
  }
  const bool in_blocks = stored == StoredWeights::gguf ||
                         (stored == StoredWeights::random && !detail::runs_in_groups(spec));
  const bool widens = workload.weights == WeightForm(WeightType::bfloat16) &&
                      command.activations == ActivationPath::float32;
  if (stored == StoredWeights::none && command.activations && !widens) {
    throw_without_choice(*command.activations, workload);
  }
  command.options.activations =
      command.activations.value_or(in_blocks ? ActivationPath::int8 : ActivationPath::float32);
}

/// Sets the types in which the weights are held, and those of `model` to match: random ones in the
/// type asked for, those of a GGUF file or of quantised safetensors as stored unless another type
/// is asked for.
void choose_storage(MeasureCommand& command, const Workload& workload, const fs::path& weights,
                    Model& model) {
  const StoredWeights stored = stored_weights_of(workload, weights);
  command.options.storage =
      stored == StoredWeights::none ? storage_of(workload) : measured::HeldType::stored;
  switch (stored) {
    case StoredWeights::none:
    case StoredWeights::packed:
      break;
    case StoredWeights::random:
      if (!weights.empty()) {
        throw_invalid_input(fmt::format("--weights {} converts no files; {} runs as it is stored",
                                        name_of(*workload.weights), weights.string()),
                            "leave out --weights, or draw weights with --checkpoint random");
      }
      model.spec = stored_as(std::move(model.spec), *workload.weights);
      break;
    case StoredWeights::gguf:
      model.weight_files = weights.string();
      model = with_file_types(std::move(model));
      break;
  }
  choose_activations(command, workload, stored, model.spec);
}

/// Names the weights that run in another type than they are stored in.
std::vector<std::string> notes_on_widened(const Measurement& measurement) {
  std::vector<std::string> notes;
  for (const WeightFormat& format : measurement.weight_formats) {
    if (format.stored == format.held) continue;
    notes.push_back(fmt::format("{} of the weights are stored as {}, which this run widens to {}",
                                with_separators(format.parameters), format.stored, format.held));
  }
  return notes;
}

/// Caveats on the model and its workload.
std::vector<std::string> notes_on_run(const ModelSpec& spec, const Workload& workload) {
  std::vector<std::string> notes = notes_on_config(spec);
  for (const std::string& note : notes_on_chunks(workload, spec)) {
    notes.push_back(with_options(note));
  }
  for (const std::string& note : {note_on_images(workload, spec), note_on_audio(workload, spec)}) {
    if (!note.empty()) notes.push_back(with_options(note));
  }
  return notes;
}

/// Notes on a run that are known before it, and what others are made of.
struct RunCaveats {
  std::vector<std::string> on_run;
  std::string on_name;
  fs::path weights;
  Workload workload;
};

/// All notes on a run, after it; adds that on the model's name to the warnings of its report.
std::vector<std::string> notes_on(const MeasureCommand& command, const RunCaveats& caveats,
                                  Measurement& measurement) {
  std::vector<std::string> notes = caveats.on_run;
  if (!caveats.on_name.empty()) measurement.warnings.push_back(caveats.on_name);
  notes.insert(notes.end(), measurement.warnings.begin(), measurement.warnings.end());
  for (std::string& note : notes_on_widened(measurement)) notes.push_back(std::move(note));
  if (measurement.integers_decoded && !command.activations) {
    notes.emplace_back(
        "products decode the weights to float32, since their formats leave activations "
        "unquantised; --activations int8 multiplies integers, mostly faster and less exactly");
  }
  if (is_quantised(caveats.weights) && command.options.storage != measured::HeldType::stored) {
    notes.push_back(fmt::format("the weights are {} B in their file, and run as {}",
                                with_separators(inspect(caveats.weights.string()).weights.bytes),
                                held_type(caveats.workload)));
  }
  if (measurement.interrupted) notes.push_back(interruption_note());
  return notes;
}

/// Measures, and writes the outputs that the command asks for.
Measurement measure_and_save(MeasureCommand& command, Model model, const Workload& workload,
                             const fs::path& weights, measured::InputFile file) {
  const ModelSpec spec = model.spec;
  measured::MeasureOptions& options = command.options;
  auto saved = open_saved(command);
  if (saved && file.generate)
    require_generation_fits(command.options, spec, *file.generate, workload);
  measured::RunOutputs kept;
  measured::OutputObserver keep;
  if (saved || command.show_tokens) {
    options.outputs = measured::KeptOutputs::all;
    keep = [&](measured::RunOutputs outputs) { kept = std::move(outputs); };
  }
  std::optional<measured::ModelInputs> given;
  if (file.inputs.main.batch > 0) given = std::move(file.inputs);
  Measurement measurement = measured::measure(
      std::move(model), workload, *with_progress(open_weights(weights, options, spec), spec),
      std::move(given), options, show_run, keep);
  if (saved && !measurement.interrupted) {
    std::vector<checkpoint::TensorToWrite> tensors = tensors_of(kept);
    if (file.generate) {
      add_generation(command.options, spec, *open_weights(weights, options, spec), *file.generate,
                     workload, tensors);
    }
    checkpoint::write_safetensors(*saved, tensors);
  }
  if (command.show_tokens) measurement.generated_ids = std::move(kept.generated_ids);
  clear_progress();
  return measurement;
}

/// A command whose model and inputs are read.
struct PreparedRun {
  Model model;
  fs::path weights;
  measured::InputFile file;
  Workload workload;
};

PreparedRun prepare(MeasureCommand& command) {
  fill_in_threads(command.options.threads);
  PreparedRun run;
  run.model = command.reading.load(command.model);
  measured::require_runnable(run.model.spec);
  run.weights = weight_files(command, run.model);
  if (checkpoint::is_gguf(run.weights)) {
    RopeSpec& rope = run.model.spec.position.rope;
    rope = detail::with_stored_factors(std::move(rope), run.weights);
  }
  run.file = read_input(command, run.model.spec);
  run.workload = workload_of_inputs(command, run.model.spec, run.file);
  choose_storage(command, run.workload, run.weights, run.model);
  return run;
}

/// Throws Error{invalid_input} for a run that several processes cannot make.
void require_runs_on_ranks(const MeasureCommand& command, const PreparedRun& run) {
  require_plan_runs(command.plan, command.options, run.model.spec, run.workload);
}

RankIdentity identity_of(const MeasureCommand& command, const PreparedRun& run) {
  RankIdentity identity;
  const Graph graph = build_graph(run.model.spec, all_parts());
  identity.model = fmt::format("{} of {} parameters", run.model.spec.name,
                               count_parameters(graph).total.evaluate(graph.sizes));
  identity.weights = run.weights.empty() ? fmt::format("seed {}", command.options.seed)
                                         : fmt::format("files {}", sample_of(run.weights));
  identity.command = fmt::format("{} · batch {} seq {} past {} new {} phase {}",
                                 describe(command.plan, command.options), run.workload.batch_size,
                                 run.workload.seq_len, run.workload.past_len,
                                 command.options.new_tokens, name_of(command.options.phase));
  return identity;
}

}  // namespace

Measured measure_one(MeasureCommand command) {
  auto [model, weights, file, workload] = prepare(command);
  const RunCaveats caveats{notes_on_run(model.spec, workload), model.name_note, weights, workload};
  Measurement measurement =
      measure_and_save(command, std::move(model), workload, weights, std::move(file));
  std::vector<std::string> notes = notes_on(command, caveats, measurement);
  return {std::move(measurement), std::move(notes)};
}

Measured measure_on_ranks(MeasureCommand command, RankRun& ranks) {
  PreparedRun run;
  std::optional<detail::OutputFile> saved;
  ranks.together([&] {
    run = prepare(command);
    require_runs_on_ranks(command, run);
    if (ranks.reports()) saved = open_saved(command);
  });
  ranks.require_equal(identity_of(command, run));
  measured::MeasureOptions& options = command.options;
  options.rank = &ranks.context();
  const RunCaveats caveats{notes_on_run(run.model.spec, run.workload), run.model.name_note,
                           run.weights, run.workload};
  std::optional<measured::ModelInputs> given;
  if (run.file.inputs.main.batch > 0) given = std::move(run.file.inputs);
  measured::RunOutputs kept;
  measured::OutputObserver keep;
  if (!command.save_output.empty() || command.show_tokens) {
    options.outputs = measured::KeptOutputs::all;
    keep = [&](measured::RunOutputs outputs) { kept = std::move(outputs); };
  }
  const auto weights = open_weights(run.weights, options, run.model.spec);
  const auto no_progress = [](int /*done*/, int /*at_most*/) { return true; };
  Measurement measurement = measured::measure(std::move(run.model), run.workload, *weights,
                                              std::move(given), options, no_progress, keep);
  ranks.gather(measurement);
  if (!command.save_output.empty()) kept.tensors = ranks.gather(std::move(kept.tensors));
  kept.generated_ids = ranks.gather(kept.generated_ids);
  if (saved) checkpoint::write_safetensors(*saved, tensors_of(kept));
  if (command.show_tokens) measurement.generated_ids = std::move(kept.generated_ids);
  std::vector<std::string> notes = notes_on(command, caveats, measurement);
  return {std::move(measurement), std::move(notes)};
}

}  // namespace headroom::cli
