// Runs of a sweep, on one process and on several.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "efficiency_options.h"
#include "headroom/report.h"
#include "model_reading.h"
#include "output_file.h"
#include "progress.h"

namespace headroom::cli {

/// Rows as they are found, or a page of all.
enum class SweepOutput { csv, json_lines, page };

/// The options of a sweep.
struct SweepCommand {
  std::string model;
  ModelReading reading;
  std::string machine;
  GivenEfficiency efficiency;
  SweepGrid grid;
  std::optional<SweepOutput> output;
  std::string file;
  bool quiet = false;
};

/// A command whose model and machine are read.
struct PreparedSweep {
  Model model;
  std::optional<MachineProfile> machine;
  SweepGrid grid;
  Integer rows = 0;
  std::vector<std::string> notes;
};

/// Reads the model and the machine. Throws Error, also for a grid that no disk holds.
[[nodiscard]] PreparedSweep prepare(const SweepCommand& command);

/// The option's output, or that of the user's format, whose JSON is lines of it here.
[[nodiscard]] SweepOutput output_of(const SweepCommand& command);

/// The format of streamed rows.
[[nodiscard]] SweepFormat row_format_of(const SweepCommand& command);

/// Standard output, or a file that gets its name once it is complete. Writes whole rows only, so
/// the output of an interrupted sweep is valid.
class RowStream {
 public:
  /// Standard output if `file` is empty.
  explicit RowStream(const std::string& file);

  /// The buffer of rows.
  std::string& text() noexcept { return text_; }
  void flush_when_long();
  void finish();
  /// Gives the rows written so far the name of a partial file. Returns it; empty for standard
  /// output.
  std::string finish_partial();

 private:
  void flush();

  std::optional<detail::OutputFile> file_;
  std::string text_;
};

/// Draws the progress of a sweep. Returns false once a signal asked for the end.
bool show_rows(ProgressBar& bar, Integer rows, Integer size);

/// Ends the output of a sweep with its notes.
void write_end(const SweepCommand& command, const SweepWriter& writer,
               std::vector<std::string> notes);

/// Writes a page of all rows. Throws Error{invalid_input} for more than a page has room for.
void sweep_to_page(const SweepCommand& command);
void sweep_on_one_process(const SweepCommand& command);
/// Every process that was started with this one must call it. Throws Error.
void sweep_on_ranks(const SweepCommand& command);

}  // namespace headroom::cli
