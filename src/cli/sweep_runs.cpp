#include "sweep_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headroom/error.h"
#include "interruption.h"
#include "output.h"
#include "own_machine.h"
#include "standard_streams.h"
#include "user_settings.h"
#include "with_noun.h"

namespace headroom::cli {
namespace {

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

/// Sets `length` to the largest of `lengths`, if there are any.
template <class Length>
void take_largest(const std::vector<std::int64_t>& lengths, Length& length) {
  if (!lengths.empty()) length = *std::ranges::max_element(lengths);
}

/// The row of `grid` with the largest lengths.
Workload longest_row(const SweepGrid& grid, const ModelSpec& spec) {
  WorkloadRequest request;
  request.phase = grid.phase;
  take_largest(grid.batch_size, request.batch_size);
  take_largest(grid.seq_len, request.seq_len);
  take_largest(grid.enc_seq_len, request.enc_seq_len);
  take_largest(grid.past_len, request.past_len);
  take_largest(grid.images, request.images);
  take_largest(grid.audio, request.audio);
  if (request.audio > 0) take_largest(grid.audio_seconds, request.audio_seconds);
  if (request.images > 0 && !grid.image_size.empty()) request.image_size = grid.image_size.front();
  return resolve(request, spec);
}

}  // namespace

SweepOutput output_of(const SweepCommand& command) {
  if (command.output) return *command.output;
  switch (format_or(Format::csv)) {
    case Format::json:
      return SweepOutput::json_lines;
    case Format::html:
      return SweepOutput::page;
    case Format::table:
    case Format::csv:
    case Format::markdown:
    case Format::trace:
      break;
  }
  return SweepOutput::csv;
}

SweepFormat row_format_of(const SweepCommand& command) {
  return output_of(command) == SweepOutput::json_lines ? SweepFormat::json_lines : SweepFormat::csv;
}

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
  const auto positions = notes_on_positions(longest_row(sweep.grid, spec), spec);
  notes.insert(notes.begin(), positions.begin(), positions.end());
  return sweep;
}

RowStream::RowStream(const std::string& file) {
  if (!file.empty()) file_.emplace(file);
}

void RowStream::flush_when_long() {
  constexpr std::size_t kLong = std::size_t{1} << 16U;
  if (text_.size() >= kLong) flush();
}

void RowStream::finish() {
  flush();
  if (file_) file_->commit();
}

std::string RowStream::finish_partial() {
  flush();
  if (!file_) return {};
  file_->commit_partial();
  return detail::OutputFile::partial_name(file_->path()).string();
}

void RowStream::flush() {
  if (file_) {
    file_->write(text_);
  } else {
    write_standard_output(text_);
  }
  text_.clear();
}

void write_end(const SweepCommand& command, const SweepWriter& writer,
               std::vector<std::string> notes) {
  clear_progress();
  if (!writer.defaults().empty()) notes.push_back("defaults: " + writer.defaults());
  if (!command.quiet) write_notes(notes);
}

bool show_rows(ProgressBar& bar, Integer rows, Integer size) {
  return bar.show(static_cast<double>(rows) / static_cast<double>(size),
                  detail::with_noun_grouped(rows, "row"));
}

void sweep_to_page(const SweepCommand& command) {
  PreparedSweep prepared = prepare(command);
  if (prepared.rows > kMostPageRows) {
    throw_invalid_input(fmt::format("a page has room for {} rows, and the grid has {}",
                                    with_separators(kMostPageRows), with_separators(prepared.rows)),
                        "widen the steps, such as 1..1024:x2, or take --format csv or jsonl");
  }
  OutputOptions options;
  options.file = command.file;
  options.quiet = command.quiet;
  ReportOutput output(options);
  SweepReport report{std::move(prepared.model.spec), std::move(prepared.grid), {}, {}};
  if (prepared.machine) report.machine = prepared.machine->name;
  sweep(report.spec, report.grid, prepared.machine, [&](const SweepRow& row) {
    detail::throw_if_interrupted();
    report.rows.push_back(row);
    return true;
  });
  output.write(render_page(report, {.invocation = current_invocation()}), prepared.notes);
}

void sweep_on_one_process(const SweepCommand& command) {
  PreparedSweep prepared = prepare(command);
  detail::end_at_next_step();
  SweepWriter writer(row_format_of(command), prepared.model.spec, current_invocation());
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
    prepared.notes.push_back(fmt::format("interrupted after {} of {}{}", with_separators(rows),
                                         detail::with_noun_grouped(prepared.rows, "row"),
                                         partial.empty() ? "" : ", which are in " + partial));
  } else {
    stream.finish();
  }
  write_end(command, writer, std::move(prepared.notes));
}

}  // namespace headroom::cli
