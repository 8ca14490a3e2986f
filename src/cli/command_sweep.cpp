// headroom sweep MODEL: a grid of workloads, one row each, streamed.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "commands.h"
#include "headroom/error.h"
#include "headroom/sweep_writer.h"
#include "options.h"
#include "own_machine.h"
#include "progress.h"
#include "sweep_axis.h"

namespace headroom::cli {
namespace {

struct SweepCommand {
  std::string model;
  std::string machine;
  SweepGrid grid;
  SweepFormat format = SweepFormat::csv;
  std::string file;
  bool quiet = false;
};

/// A file that takes its name once it is whole, or standard output. Only whole rows are written, so
/// that what an interrupted sweep leaves is valid.
class RowStream {
 public:
  explicit RowStream(const std::string& file) : file_(file) {
    if (file.empty()) return;
    temporary_ = fmt::format("{}.{}.tmp", file, getpid());
    stream_ = std::fopen(temporary_.c_str(), "wb");
    if (stream_ == nullptr) fail();
  }
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;
  ~RowStream() {
    if (file_.empty() || stream_ == nullptr) return;
    std::fclose(stream_);
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }

  /// Rows gather here.
  std::string& text() { return text_; }

  void flush_when_long() {
    constexpr std::size_t kLong = std::size_t{1} << 16U;
    if (text_.size() >= kLong) flush();
  }

  void finish() {
    flush();
    if (std::fflush(stream_) != 0) fail();
    if (file_.empty()) return;
    const bool closed = std::fclose(std::exchange(stream_, nullptr)) == 0;
    std::error_code failed;
    if (closed) std::filesystem::rename(temporary_, file_, failed);
    if (!closed || failed) fail();
  }

 private:
  void flush() {
    if (std::fwrite(text_.data(), 1, text_.size(), stream_) != text_.size()) fail();
    text_.clear();
  }

  [[noreturn]] void fail() const {
    throw Error(ErrorCode::missing_resource,
                "cannot be written: " + std::generic_category().message(errno),
                file_.empty() ? "standard output" : file_,
                "check the folder, its permissions and the space left");
  }

  std::string file_;
  std::string temporary_;
  std::FILE* stream_ = stdout;
  std::string text_;
};

void run(const SweepCommand& command) {
  const Model model = load_model(command.model);
  std::optional<MachineProfile> machine;
  if (!command.machine.empty()) machine = machine_named(command.machine, default_backend());
  const Integer size = size_of(command.grid);
  SweepWriter writer(command.format, model.spec);
  RowStream stream(command.file);
  stream.text() = writer.header();
  catch_interrupt();
  constexpr Integer kRowsBetweenLooks = 1 << 14;
  Integer rows = 0;
  sweep(model.spec, command.grid, machine, [&](const SweepRow& row) {
    writer.append_row(row, stream.text());
    stream.flush_when_long();
    if (++rows % kRowsBetweenLooks != 0) return true;
    return show_progress(static_cast<double>(rows) / static_cast<double>(size),
                         fmt::format("{} rows", with_separators(rows)));
  });
  clear_progress();
  stream.finish();
  if (interrupted() && !command.quiet) {
    fmt::print(stderr, "note: stopped after {} of {} rows\n", with_separators(rows),
               with_separators(size));
  }
}

template <class Value>
void add_axis(CLI::App& app, const char* name, std::vector<Value>& target,
              const Choices<Value>& choices, const char* description) {
  std::string words;
  for (const auto& [word, value] : choices) words += (words.empty() ? "" : "|") + word;
  const auto parse = [&target, name, choices](const std::vector<std::string>& given) {
    for (const std::string& word : given) {
      std::optional<Value> value;
      add_known(word, name, choices, value);
      target.push_back(*value);
    }
  };
  app.add_option_function<std::vector<std::string>>(name, parse, description)
      ->delimiter(',')
      ->type_name(words)
      ->group("Grid");
}

void add_numbers(CLI::App& app, const char* name, std::vector<std::int64_t>& target,
                 const char* description) {
  const auto parse = [&target, name](const std::string& text) { target = parse_axis(name, text); };
  app.add_option_function<std::string>(name, parse, description)->type_name("GRID")->group("Grid");
}

void add_grid(CLI::App& app, SweepGrid& grid) {
  const Choices<DType> dtypes{
      {"float32", DType::float32}, {"fp32", DType::float32},      {"float16", DType::float16},
      {"fp16", DType::float16},    {"bfloat16", DType::bfloat16}, {"bf16", DType::bfloat16},
      {"float8", DType::float8},   {"fp8", DType::float8},        {"int8", DType::int8}};
  add_numbers(app, "--batch,-b", grid.batch_size, "Sequences at once (1)");
  add_numbers(app, "--seq,-s", grid.seq_len, "New tokens of each sequence (128; 1 in decode)");
  add_numbers(app, "--past,-p", grid.past_len, "Tokens already in the KV-cache (0; 127 in decode)");
  add_numbers(app, "--enc-seq", grid.enc_seq_len, "Tokens that an encoder reads (128)");
  add_axis<DType>(app, "--dtype", grid.dtype, dtypes, "Types of weights and activations (float32)");
  add_axis<DType>(app, "--kv-dtype", grid.kv_dtype, dtypes, "Types of the KV-cache (as --dtype)");
  add_axis<AttentionImplementation>(
      app, "--attention", grid.attention,
      {{"eager", AttentionImplementation::eager}, {"fused", AttentionImplementation::fused}},
      "How attention is computed (eager)");
  add_axis<Recompute>(
      app, "--recompute", grid.recompute,
      {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}},
      "What training computes again (none)");
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto command = std::make_shared<SweepCommand>();
  CLI::App* sweep = app.add_subcommand("sweep", "Stream the figures of a grid of workloads");
  sweep->add_option("model", command->model, "A preset, a config.json, or a folder with one")
      ->type_name("MODEL")
      ->required();
  add_grid(*sweep, command->grid);
  add_choice<Phase>(
      *sweep, "--phase", command->grid.phase,
      {{"prefill", Phase::prefill}, {"decode", Phase::decode}, {"train", Phase::train}},
      "What the model does (prefill)");
  add_choice<Kernels>(*sweep, "--kernels", command->grid.kernels,
                      {{"reference", Kernels::reference}, {"fused", Kernels::fused}},
                      "Kernels of a training step (reference)");
  sweep->add_option("--machine", command->machine, "Adds the time on it: here, a name, or a file")
      ->type_name("MACHINE");
  add_choice<SweepFormat>(*sweep, "--format,-f", command->format,
                          {{"csv", SweepFormat::csv}, {"jsonl", SweepFormat::json_lines}},
                          "How rows are written (csv)");
  sweep->add_option("--output,-o", command->file, "Write to a file")->type_name("FILE");
  sweep->add_flag("--quiet,-q", command->quiet, "No notes on standard error");
  sweep->footer(
      "GRID is a list of numbers and ranges: 1,2,8 or 1..64:x2 (times 2) or 128..1024:+128.\n"
      "\n"
      "Examples:\n"
      "  headroom sweep bert-base --batch 1..64:x2 --seq 128..512:+128\n"
      "  headroom sweep llama-3-8b --phase decode --past 1023..131071:+1024 --batch 1..256:x2 "
      "--dtype bf16,fp8\n"
      "  headroom sweep gpt2 --batch 1..1024 --seq 1..1024 --machine a100-80gb --format jsonl");
  sweep->callback([command] { run(*command); });
}

}  // namespace headroom::cli
