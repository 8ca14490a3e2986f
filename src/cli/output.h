// Destination of a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "output_file.h"

namespace headroom::cli {

/// Standard output, or a file that is opened before the work, so that an unwritable one is refused
/// at once, and written whole or not at all.
class ReportOutput {
 public:
  /// Throws Error{missing_resource}.
  explicit ReportOutput(const OutputOptions& options);

  /// Writes `text`, then notes to standard error, unless quiet. Throws Error{missing_resource}.
  void write(const std::string& text, const std::vector<std::string>& notes);

 private:
  std::optional<detail::OutputFile> file_;
  bool quiet_;
};

/// The program's arguments, which JSON reports repeat. Call once, before a command runs.
void set_invocation(const std::vector<std::string>& arguments);

/// The program's arguments with the settings and defaults that the running command has taken.
[[nodiscard]] Invocation current_invocation();

/// Says that a report is of a run that a signal ended.
[[nodiscard]] std::string interruption_note();

/// Writes "LABELtext" to standard error, further lines below the text if a terminal is narrower. A
/// text of more than 8 KiB, which quotes a file, ends with "…".
void write_labelled(const std::string& label, const std::string& text);

/// Writes notes to standard error, one a line.
void write_notes(const std::vector<std::string>& notes);

}  // namespace headroom::cli
