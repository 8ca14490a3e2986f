// Help of a command as text. Knows no parser: command_line.cpp describes the command.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::cli {

/// "--seq,-s N" and what it means.
struct HelpEntry {
  std::string words;
  std::string meaning;
};

/// Options under one heading.
struct HelpGroup {
  std::string title;
  std::vector<HelpEntry> entries;
};

/// A command as its help shows it.
struct CommandHelp {
  std::string path;  ///< "headroom presets show"
  std::string description;
  std::vector<HelpEntry> arguments;
  std::vector<HelpEntry> commands;
  std::vector<HelpGroup> groups;
  std::string footer;  ///< "Examples:" with its lines, then other paragraphs
};

enum class HelpScope {
  usual,  ///< groups of rarely used options are named, not listed
  all,
};

/// Usage, examples, arguments and options, wrapped at `width` columns.
[[nodiscard]] std::string help_text(const CommandHelp& help, HelpScope scope, std::size_t width);

/// Lines of at most `width` columns, broken at blanks.
[[nodiscard]] std::vector<std::string> wrapped_words(std::string_view text, std::size_t width);

/// Columns of the terminal of standard error; 0 if it is none.
[[nodiscard]] std::size_t error_terminal_width();

/// Columns of the terminal of standard output, or else of the environment's COLUMNS; 0 if unknown.
[[nodiscard]] std::size_t terminal_width();

}  // namespace headroom::cli
