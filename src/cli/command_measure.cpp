// headroom measure MODEL: the real forward pass on this machine, timed and counted.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "commands.h"
#include "gguf.h"
#include "headroom/error.h"
#include "headroom/inspect.h"
#include "measure.h"
#include "progress.h"
#include "run_options.h"
#include "safetensors_writer.h"

namespace headroom::cli {
namespace {

namespace fs = std::filesystem;

struct MeasureCommand {
  std::string model;
  WorkloadRequest request;
  measured::MeasureOptions options;
  std::string weights;
  std::string input;
  std::vector<std::int64_t> tokens;
  std::string save_output;
  OutputOptions output;
};

/// What weights come from; empty for random ones. A model folder's or GGUF file's own are the
/// default.
fs::path weights_folder(const MeasureCommand& command) {
  if (command.weights == "random") return {};
  if (!command.weights.empty()) return command.weights;
  fs::path path(command.model);
  if (find_preset(command.model)) return {};
  if (checkpoint::is_gguf(path)) return path;
  if (path.filename() == "config.json") path = fs::absolute(path).parent_path();
  const bool can_have = fs::is_directory(path) || path.extension() == ".safetensors";
  const bool has_weights = can_have && checkpoint::Checkpoint::exists(path);
  return has_weights ? path : fs::path();
}

std::unique_ptr<measured::WeightSource> open_weights(const MeasureCommand& command,
                                                     const ModelSpec& spec) {
  const fs::path folder = weights_folder(command);
  if (folder.empty()) return measured::random_weights(command.options.seed);
  if (checkpoint::is_gguf(folder)) {
    return measured::stored_weights(spec, detail::read_gguf(folder, spec));
  }
  return measured::checkpoint_weights(spec, checkpoint::Checkpoint(folder));
}

measured::InputFile read_input(const MeasureCommand& command, const ModelSpec& spec) {
  measured::InputFile file;
  if (!command.input.empty()) return measured::read_inputs(command.input, spec);
  if (command.tokens.empty()) return file;
  for (const std::int64_t id : command.tokens) {
    if (id >= 0 && id < spec.embedding.vocab_size) continue;
    throw Error(ErrorCode::invalid_input,
                fmt::format("--tokens {} is not from 0 to {}", id, spec.embedding.vocab_size - 1));
  }
  file.inputs.main = {1, static_cast<std::int64_t>(command.tokens.size()), command.tokens, {}, {}};
  if (spec.kind == ModelKind::encoder_decoder) file.inputs.encoder = file.inputs.main;
  return file;
}

checkpoint::TensorToWrite stored(const measured::NamedTensor& tensor) {
  return checkpoint::float32_tensor(tensor.name, tensor.shape, tensor.values);
}

/// Runs once more, untimed, and writes every result under Hugging Face's names.
void save_outputs(const MeasureCommand& command, const ModelSpec& spec,
                  const measured::InputFile& file, const Workload& workload) {
  const auto source = open_weights(command, spec);
  measured::Session session(spec, *source,
                            {command.options.backend, command.options.storage,
                             measured::RowRange::both, workload.seq_len, workload.attention});
  const measured::ModelInputs inputs =
      file.inputs.main.batch > 0 ? file.inputs
                                 : measured::random_inputs(spec, workload, command.options.seed);
  std::vector<checkpoint::TensorToWrite> tensors;
  for (const measured::NamedTensor& tensor : session.forward(inputs)) {
    tensors.push_back(stored(tensor));
  }
  if (file.generate) {
    const measured::Generation generation = session.generate(*file.generate);
    tensors.push_back(checkpoint::int64_tensor(
        "generate.ids", {1, static_cast<std::int64_t>(generation.ids.size())}, generation.ids));
    tensors.push_back(stored(generation.logits));
  }
  checkpoint::write_safetensors(command.save_output, tensors);
}

/// The workload that is asked for; an input file or tokens decide its sizes.
Workload workload_of(const MeasureCommand& command, const ModelSpec& spec,
                     const measured::InputFile& file) {
  WorkloadRequest request = command.request;
  const measured::TokenInputs& main = file.inputs.main;
  if (main.batch > 0) {
    request.batch_size = main.batch;
    request.seq_len = main.seq_len;
    if (file.inputs.encoder) request.enc_seq_len = file.inputs.encoder->seq_len;
  }
  return workload_of_run(request, command.options.phase, spec);
}

void run(MeasureCommand& command) {
  Model model = load_model(command.model);
  const fs::path weights = weights_folder(command);
  const bool dequantised = checkpoint::is_gguf(weights);
  if (dequantised) {
    RopeSpec& rope = model.spec.position.rope;
    rope = detail::with_stored_factors(std::move(rope), weights);
  }
  measured::InputFile file = read_input(command, model.spec);
  const Workload workload = workload_of(command, model.spec, file);
  measured::MeasureOptions& options = command.options;
  options.storage = storage_of(workload);
  if (!command.save_output.empty()) save_outputs(command, model.spec, file, workload);

  catch_interrupt();
  const auto source = open_weights(command, model.spec);
  std::optional<measured::ModelInputs> given;
  if (file.inputs.main.batch > 0) given = std::move(file.inputs);
  const Measurement measurement =
      measured::measure(std::move(model), workload, *source, std::move(given), options, show_run);
  clear_progress();
  std::vector<std::string> notes = measurement.warnings;
  if (dequantised) {
    notes.push_back(fmt::format("the weights take {} B in their file, and run as {}",
                                with_separators(inspect(weights.string()).weights.bytes),
                                name_of(workload.dtype)));
  }
  if (interrupted()) notes.emplace_back("interrupted: this is what was measured until then");
  write_output(render(measurement, render_options(command.output, Detail::summary)), notes,
               command.output);
}

void add_measure_options(CLI::App& app, MeasureCommand& command) {
  measured::MeasureOptions& options = command.options;
  add_count(
      app, "--warmup", {0, 1000}, [&](std::int64_t n) { options.warmup = static_cast<int>(n); },
      "Runs before the first that counts (2)")
      ->group("Run");
  add_count(
      app, "--seed", [&](std::int64_t n) { options.seed = static_cast<std::uint64_t>(n); },
      "Of random weights and inputs (1)")
      ->group("Run");
  app.add_option("--weights", command.weights,
                 "Folder with safetensors, a GGUF file, or random (the model's own, else random)")
      ->type_name("PATH|random")
      ->group("Run");
  app.add_option("--input", command.input,
                 "Inputs: a JSON file of tokens, or safetensors of pixels")
      ->type_name("FILE")
      ->group("Run");
  app.add_option("--tokens", command.tokens, "Token ids of one sequence, with commas between")
      ->delimiter(',')
      ->type_name("IDS")
      ->group("Run");
  app.add_option("--save-output", command.save_output, "Write all results as safetensors")
      ->type_name("FILE")
      ->group("Run");
}

}  // namespace

void add_measure(CLI::App& app) {
  auto command = std::make_shared<MeasureCommand>();
  CLI::App* measure = app.add_subcommand("measure", "Run the real forward pass, timed and counted");
  measure
      ->add_option("model", command->model,
                   "A preset, a config.json, a folder with one, or a GGUF file")
      ->type_name("MODEL")
      ->required();
  add_measured_phase_option(*measure, command->options.phase);
  add_inference_options(*measure, command->request);
  add_run_options(*measure, command->options);
  add_measure_options(*measure, *command);
  add_output_options(*measure, command->output);
  measure->footer(
      "Examples:\n"
      "  headroom measure bert-base\n"
      "  headroom measure gpt2 --phase decode --past 255 --threads 1\n"
      "  headroom measure gpt2 --phase generate --seq 64 --new-tokens 32\n"
      "  headroom measure ./my-model --input inputs.json --save-output out.safetensors");
  measure->callback([command] { run(*command); });
}

}  // namespace headroom::cli
