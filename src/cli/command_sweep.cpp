// headroom sweep MODEL: the figures of a grid of workloads, streamed row by row.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "commands.h"
#include "options.h"
#include "processes.h"
#include "sweep_axis.h"
#include "sweep_runs.h"
#include "type_options.h"

namespace headroom::cli {
namespace {

void run_sweep(const SweepCommand& command) {
  if (distributed::launched_processes() > 1) return sweep_on_ranks(command);
  if (output_of(command) == SweepOutput::page) return sweep_to_page(command);
  sweep_on_one_process(command);
}

template <class Value>
void add_axis(Command app, const std::string& names, std::vector<Value>& target,
              const Choices<Value>& choices, const char* description) {
  const auto set = [&target, names, choices](const std::vector<std::string>& words) {
    for (const std::string& word : words) target.push_back(value_of(names, word, choices));
  };
  app.add_list(names, listed(choices), set, description).group("Grid");
}

void add_length_axis(Command app, const std::string& names, std::vector<std::int64_t>& target,
                     const char* description) {
  const auto set = [&target, names](const std::string& text) { target = parse_axis(names, text); };
  app.add_text(names, "GRID", set, description).group("Grid");
}

void add_weights_axis(Command app, std::vector<WeightForm>& target) {
  const char* const names = "--weights";
  const auto set = [&target, names](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      target.push_back(parse_weights(names, word, WeightUse::counted));
    }
  };
  app.add_list(names, weight_choices(WeightUse::counted), set,
               "Types to convert weights to (as stored); FORMAT is one in groups such as "
               "fp8-128x128-s32")
      .group("Grid");
}

void add_dtype_axis(Command app, std::vector<DType>& target) {
  const auto set = [&target](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const auto type = parse_activation_type("--dtype", word);
      if (type) target.push_back(*type);
      if (!type && words.size() > 1) refuse_value("--dtype", "takes auto alone");
    }
  };
  app.add_list("--dtype", "auto|float32|float16|bfloat16", set,
               "Types of activations (auto: the config's torch_dtype if it has 16 bits, else "
               "float32)")
      .group("Grid");
}

void add_image_sizes_axis(Command app, std::vector<ImageSize>& target) {
  const char* const name = "--image-size";
  const auto set = [&target, name](const std::string& text) {
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t comma = std::min(text.find(',', start), text.size());
      target.push_back(parse_image_size(name, text.substr(start, comma - start)));
      start = comma + 1;
    }
  };
  app.add_text(name, "HxW,…", set,
               "Pixels of each image, before the family's preprocessing (the tower's size)")
      .group("Grid");
}

void add_kv_types_axis(Command app, std::vector<KvTypes>& target) {
  const auto set = [&target](const std::string& text) {
    target = parse_kv_types("--kv-dtype", text);
  };
  app.add_text("--kv-dtype", kv_type_words(), set,
               "Types of the KV-cache; k=TYPE,v=TYPE is one value (the config's, else as --dtype)")
      .group("Grid");
}

void add_grid(Command app, SweepGrid& grid) {
  add_length_axis(app, "--batch,-b", grid.batch_size, "Sequences per batch (1)");
  add_length_axis(
      app, "--seq,-s", grid.seq_len,
      "New tokens per sequence, including those of images (128 and these; 1 in decode)");
  add_length_axis(app, "--past,-p", grid.past_len,
                  "Tokens already in the KV-cache (0; in decode 127, or what the positions leave)");
  add_length_axis(app, "--images", grid.images, kImagesHelp);
  add_image_sizes_axis(app, grid.image_size);
  add_length_axis(app, "--audio", grid.audio, kAudioHelp);
  add_length_axis(app, "--audio-seconds", grid.audio_seconds, kAudioSecondsHelp);
  add_length_axis(app, "--enc-seq", grid.enc_seq_len,
                  "Tokens of an encoder-decoder's encoder input, or text tokens of a diffusion "
                  "transformer (128; speech: the whole trained window; diffusion: its pipeline's "
                  "maximum)");
  add_weights_axis(app, grid.weights);
  add_dtype_axis(app, grid.dtype);
  add_axis(app, "--arithmetic", grid.arithmetic, arithmetic_choices(),
           "Compute types of the layers' GEMMs (the config's for its quantised layers, else as "
           "--dtype)");
  add_kv_types_axis(app, grid.kv_types);
  add_axis(app, "--attention", grid.attention, attention_choices(),
           "Attention implementations (eager; on a device: fused)");
  add_axis(app, "--recompute", grid.recompute, recompute_choices(),
           "Activation recomputation in training (none)");
}

}  // namespace

void add_sweep(Command root) {
  const Choices<SweepOutput> formats{
      {"csv", SweepOutput::csv}, {"jsonl", SweepOutput::json_lines}, {"html", SweepOutput::page}};
  auto options = std::make_shared<SweepCommand>();
  Command command = root.add_command("sweep", "Stream the figures of a grid of workloads");
  add_model_argument(command, options->model);
  add_reading_options(command, options->reading);
  add_grid(command, options->grid);
  add_choice(command, "--phase", options->grid.phase, phase_choices(),
             "Forward pass or training step (prefill)");
  add_choice(command, "--kernels", options->grid.kernels, kernels_choices(),
             "Kernels of a training step (reference)");
  command.add_text("--machine", "MACHINE", options->machine,
                   "Predict the time on: here, a name of `headroom machines`, or a file");
  add_device_efficiencies(command, options->efficiency, "Time");
  add_choice(command, "--format,-f", options->output, formats,
             "Format of the rows, or a page with their pictures (csv)");
  command.add_text("--output,-o", "FILE", options->file,
                   "Write to a file, completely or not at all");
  command.add_flag("--quiet,-q", options->quiet, "No notes on standard error");
  command.set_footer(
      "GRID is a list of numbers and ranges: 1,2,8 or 1..64:x2 (times 2) or 128..1024:+128.\n"
      "\n"
      "Examples:\n"
      "  headroom sweep bert-base --batch 1..64:x2 --seq 128..512:+128\n"
      "  headroom sweep llama-3-8b --phase decode --past 1023..131071:+1024 --batch 1..256:x2 "
      "--weights bf16,fp8\n"
      "  headroom sweep gpt2 --batch 1..1024 --seq 1..1024 --machine a100-80gb --format jsonl\n"
      "  headroom sweep llama-3-8b --phase decode --past 1023..32767:x2 --batch 1..64:x2 --format "
      "html -o page.html\n"
      "  mpirun -n 8 headroom sweep gpt2 --batch 1..1024 --seq 1..1024 -o rows.csv");
  command.on_run([options] { run_sweep(*options); });
}

}  // namespace headroom::cli
