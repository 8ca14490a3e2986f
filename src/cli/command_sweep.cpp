// headroom sweep MODEL: the figures of a grid of workloads, streamed row by row.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "commands.h"
#include "efficiency_options.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "interruption.h"
#include "joined_processes.h"
#include "model_reading.h"
#include "options.h"
#include "output.h"
#include "own_machine.h"
#include "progress.h"
#include "standard_streams.h"
#include "sweep_axis.h"
#include "sweep_pieces.h"
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

/// A command whose model and machine are read.
struct PreparedSweep {
  Model model;
  std::optional<MachineProfile> machine;
  SweepGrid grid;
  Integer rows = 0;
  std::vector<std::string> notes;
};

PreparedSweep prepare(const SweepCommand& command) {
  PreparedSweep sweep;
  std::vector<std::string>& notes = sweep.notes;
  sweep.model = with_stored_types(command.reading.load(command.model), notes);
  const ModelSpec& spec = sweep.model.spec;
  const auto more = notes_on_config(spec);
  notes.insert(notes.end(), more.begin(), more.end());
  if (!std::ranges::all_of(command.grid.kv_types, is_plain)) {
    notes.emplace_back(
        "traffic and time take the wider type of keys and values, 8 bits or more, without scales");
  }
  std::string machine_name = command.machine;
  fill_in_machine(machine_name);
  add_setting_notes(notes);
  sweep.machine = machine_with(machine_name, default_backend(), command.efficiency);
  sweep.grid = command.grid;
  add_conversion_notes(spec, sweep.grid, sweep.machine, notes);
  const auto attention = attention_on(sweep.machine, spec);
  if (attention && sweep.grid.attention.empty() && sweep.grid.phase != Phase::train) {
    sweep.grid.attention = {*attention};
  }
  sweep.rows = size_of(sweep.grid);
  require_writable_size(sweep.rows);
  return sweep;
}

void write_end(const SweepCommand& command, const SweepWriter& writer,
               std::vector<std::string> notes) {
  clear_progress();
  if (!writer.defaults().empty()) notes.push_back("defaults: " + writer.defaults());
  if (!command.quiet) write_notes(notes);
}

/// Draws the progress of a sweep. Returns false once a signal asked for the end.
bool show_rows(ProgressBar& bar, Integer rows, Integer size) {
  return bar.show(static_cast<double>(rows) / static_cast<double>(size),
                  fmt::format("{} rows", with_separators(rows)));
}

void run_on_one(const SweepCommand& command) {
  PreparedSweep prepared = prepare(command);
  detail::end_at_next_step();
  SweepWriter writer(format_of(command), prepared.model.spec, current_invocation());
  RowStream stream(command.file);
  stream.text() = writer.header();
  constexpr Integer kRowsPerProgress = 1 << 14;
  Integer rows = 0;
  ProgressBar bar;
  sweep(prepared.model.spec, prepared.grid, prepared.machine, [&](const SweepRow& row) {
    writer.append_row(row, stream.text());
    stream.flush_when_long();
    return ++rows % kRowsPerProgress != 0 || show_rows(bar, rows, prepared.rows);
  });
  clear_progress();
  if (rows < prepared.rows) {
    const std::string partial = stream.finish_partial();
    prepared.notes.push_back(fmt::format("interrupted after {} of {} rows{}", with_separators(rows),
                                         with_separators(prepared.rows),
                                         partial.empty() ? "" : ", which are in " + partial));
  } else {
    stream.finish();
  }
  write_end(command, writer, std::move(prepared.notes));
}

/// Processes take pieces of the grid in turn, and send their rows to the first one, which writes
/// them in order.
class SharedSweep {
 public:
  SharedSweep(const SweepCommand& command, const PreparedSweep& prepared,
              measured::Coordinator& world)
      : prepared_(prepared),
        world_(world),
        writer_(format_of(command), prepared.model.spec, current_invocation()) {
    if (world.rank() == 0) stream_.emplace(command.file).text() = writer_.header();
  }

  void run() {
    // Several pieces for each process, so that they end together; each is worth its graph.
    constexpr Integer kMostRowsOfPiece = 1 << 16;
    constexpr Integer kPiecesEach = 8;
    const Integer even = ceil_div(prepared_.rows, kPiecesEach * world_.size());
    for_each_piece(prepared_.grid, std::min(kMostRowsOfPiece, even), [&](const SweepGrid& piece) {
      detail::throw_if_interrupted();
      const std::int64_t owner = next_owner_++ % world_.size();
      if (world_.rank() == 0) {
        write(owner == 0 ? rows_of(piece) : receive(owner), size_of(piece));
      } else if (world_.rank() == owner) {
        send(piece);
      }
    });
    if (stream_) stream_->finish();
  }

  [[nodiscard]] const SweepWriter& writer() const noexcept { return writer_; }

 private:
  /// Sends the rows of `piece` after an empty text, or the error that it has.
  void send(const SweepGrid& piece) {
    std::string rows;
    try {
      rows = rows_of(piece);
    } catch (const Error& error) {
      const nlohmann::json parts{error.message(), error.where(), error.hint()};
      world_.send(std::to_string(static_cast<int>(error.code())), 0);
      world_.send(parts.dump(), 0);
      throw EndQuietly{exit_status(error.code())};
    }
    world_.send({}, 0);
    world_.send(rows, 0);
  }

  /// The rows of a process. Throws its error, in the order of the grid.
  std::string receive(std::int64_t owner) {
    const std::string code = world_.receive(owner);
    std::string text = world_.receive(owner);
    if (code.empty()) return text;
    const auto parts = nlohmann::json::parse(text).get<std::array<std::string, 3>>();
    throw Error(static_cast<ErrorCode>(std::stoi(code)), parts[0], parts[1], parts[2]);
  }

  std::string rows_of(const SweepGrid& piece) {
    std::string text;
    sweep(prepared_.model.spec, piece, prepared_.machine, [&](const SweepRow& row) {
      if (!started_ && world_.rank() > 0) {  // only the first row of all names the command
        writer_.append_row(row, text);
        text.clear();
      }
      started_ = true;
      writer_.append_row(row, text);
      return true;
    });
    return text;
  }

  void write(const std::string& text, Integer rows) {
    stream_->text() += text;
    stream_->flush_when_long();
    rows_ += rows;
    (void)show_rows(bar_, rows_, prepared_.rows);
  }

  const PreparedSweep& prepared_;
  measured::Coordinator& world_;
  SweepWriter writer_;
  std::optional<RowStream> stream_;  ///< of the first process
  std::int64_t next_owner_ = 0;
  bool started_ = false;
  Integer rows_ = 0;
  ProgressBar bar_;
};

void run_on_ranks(const SweepCommand& command) {
  JoinedProcesses all;
  all.run([&] {
    PreparedSweep prepared;
    std::optional<SharedSweep> shared;
    all.together([&] {
      prepared = prepare(command);
      shared.emplace(command, prepared, all.processes().world());
    });
    detail::end_at_next_step();
    shared->run();
    if (all.reports()) write_end(command, shared->writer(), prepared.notes);
  });
}

void run_sweep(const SweepCommand& command) {
  if (distributed::launched_processes() > 1) return run_on_ranks(command);
  run_on_one(command);
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
      "  headroom sweep gpt2 --batch 1..1024 --seq 1..1024 --machine a100-80gb --format jsonl\n"
      "  mpirun -n 8 headroom sweep gpt2 --batch 1..1024 --seq 1..1024 -o rows.csv");
  command.on_run([options] { run_sweep(*options); });
}

}  // namespace headroom::cli
