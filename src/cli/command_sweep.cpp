// headroom sweep MODEL: the figures of a grid of workloads, streamed row by row.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "commands.h"
#include "efficiency_options.h"
#include "headroom/report.h"
#include "interruption.h"
#include "model_reading.h"
#include "options.h"
#include "output.h"
#include "own_machine.h"
#include "progress.h"
#include "standard_streams.h"
#include "sweep_axis.h"
#include "type_options.h"
#include "user_settings.h"

namespace headroom::cli {
namespace {

struct SweepCommand {
  std::string model;
  ModelReading reading;
  std::string machine;
  GivenEfficiency efficiency;
  SweepGrid grid;
  std::optional<SweepFormat> format;
  std::string file;
  bool quiet = false;
};

/// Standard output, or a file that gets its name once it is complete. Writes whole rows only, so
/// the output of an interrupted sweep is valid.
class RowStream {
 public:
  explicit RowStream(const std::string& file) {
    if (!file.empty()) file_.emplace(file);
  }

  /// The buffer of rows.
  std::string& text() { return text_; }

  void flush_when_long() {
    constexpr std::size_t kLong = std::size_t{1} << 16U;
    if (text_.size() >= kLong) flush();
  }

  void finish() {
    flush();
    if (file_) file_->commit();
  }

  /// Gives the rows written so far the name of a partial file. Returns it; empty for standard
  /// output.
  std::string finish_partial() {
    flush();
    if (!file_) return {};
    file_->commit_partial();
    return detail::OutputFile::partial_name(file_->path()).string();
  }

 private:
  void flush() {
    if (file_) {
      file_->write(text_);
    } else {
      write_standard_output(text_);
    }
    text_.clear();
  }

  std::optional<detail::OutputFile> file_;
  std::string text_;
};

/// Returns whether the graph's polynomials, with one type of whole bytes, count a cache of `types`.
bool is_plain(const KvTypes& types) {
  const auto whole = [](std::optional<KvType> type) {
    return !type || (info(*type).block_values == 1);
  };
  return types.key == types.value && whole(types.key);
}

/// A terabyte of rows of 200 B, and half an hour.
constexpr Integer kMostRows = 5'000'000'000;

/// Throws Error{invalid_input} for a grid that no disk holds.
void require_writable_size(Integer rows) {
  if (rows <= kMostRows) return;
  throw_invalid_input(fmt::format("the grid has {} rows, more than {}", with_separators(rows),
                                  with_separators(kMostRows)),
                      "widen the steps, such as 1..1024:x2, or leave out values");
}

/// The user's JSON is lines of it here.
SweepFormat format_of(const SweepCommand& command) {
  if (command.format) return *command.format;
  return format_or(Format::csv) == Format::json ? SweepFormat::json_lines : SweepFormat::csv;
}

/// Rows have no header that could say so.
void add_setting_notes(std::vector<std::string>& notes) {
  for (const UserSetting& setting : settings_taken()) {
    notes.push_back(
        fmt::format("{} {} is that of {}", setting.name, setting.value, setting.source));
  }
}

/// Notes on the types of GEMMs in `grid` that `machine` converts.
void add_conversion_notes(const ModelSpec& spec, const SweepGrid& grid,
                          const std::optional<MachineProfile>& machine,
                          std::vector<std::string>& notes) {
  if (!machine) return;
  std::vector<DType> types = grid.arithmetic;
  const auto stated = stated_arithmetic(spec);
  if (types.empty() && grid.weights.empty() && stated) types = {*stated};
  for (const DType type : types) {
    if (auto note = conversion_note(*machine, type)) notes.push_back(std::move(*note));
  }
}

void run_sweep(const SweepCommand& command) {
  std::vector<std::string> notes;
  const Model model = with_stored_types(command.reading.load(command.model), notes);
  const auto more = notes_on_config(model.spec);
  notes.insert(notes.end(), more.begin(), more.end());
  if (!std::ranges::all_of(command.grid.kv_types, is_plain)) {
    notes.emplace_back(
        "traffic and time take the wider type of keys and values, 8 bits or more, without scales");
  }
  std::string machine_name = command.machine;
  fill_in_machine(machine_name);
  add_setting_notes(notes);
  const std::optional<MachineProfile> machine =
      machine_with(machine_name, default_backend(), command.efficiency);
  SweepGrid grid = command.grid;
  add_conversion_notes(model.spec, grid, machine, notes);
  const auto attention = attention_on(machine, model.spec);
  if (attention && grid.attention.empty() && grid.phase != Phase::train) {
    grid.attention = {*attention};
  }
  const Integer size = size_of(grid);
  require_writable_size(size);
  detail::end_at_next_step();
  SweepWriter writer(format_of(command), model.spec, current_invocation());
  RowStream stream(command.file);
  stream.text() = writer.header();
  constexpr Integer kRowsPerProgress = 1 << 14;
  Integer rows = 0;
  ProgressBar bar;
  sweep(model.spec, grid, machine, [&](const SweepRow& row) {
    writer.append_row(row, stream.text());
    stream.flush_when_long();
    if (++rows % kRowsPerProgress != 0) return true;
    return bar.show(static_cast<double>(rows) / static_cast<double>(size),
                    fmt::format("{} rows", with_separators(rows)));
  });
  clear_progress();
  if (rows < size) {
    const std::string partial = stream.finish_partial();
    notes.push_back(fmt::format("interrupted after {} of {} rows{}", with_separators(rows),
                                with_separators(size),
                                partial.empty() ? "" : ", which are in " + partial));
  } else {
    stream.finish();
  }
  if (!writer.defaults().empty()) notes.push_back("defaults: " + writer.defaults());
  if (!command.quiet) write_notes(notes);
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
                  "Tokens already in the KV-cache (0; 127 in decode)");
  add_length_axis(app, "--images", grid.images, kImagesHelp);
  add_image_sizes_axis(app, grid.image_size);
  add_length_axis(app, "--audio", grid.audio, kAudioHelp);
  add_length_axis(app, "--audio-seconds", grid.audio_seconds, kAudioSecondsHelp);
  add_length_axis(
      app, "--enc-seq", grid.enc_seq_len,
      "Tokens of an encoder-decoder's encoder input (128), or text tokens of a diffusion "
      "transformer (its pipeline's maximum)");
  add_axis(app, "--weights", grid.weights, weight_type_choices(),
           "Types to convert weights to (as stored)");
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
  const Choices<SweepFormat> formats{{"csv", SweepFormat::csv}, {"jsonl", SweepFormat::json_lines}};
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
  add_choice(command, "--format,-f", options->format, formats, "Format of the rows (csv)");
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
      "  headroom sweep gpt2 --batch 1..1024 --seq 1..1024 --machine a100-80gb --format jsonl");
  command.on_run([options] { run_sweep(*options); });
}

}  // namespace headroom::cli
