// Manuals of the commands, written from the options that --help shows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command_line.h"

namespace headroom::cli {

/// Text below a heading: examples and notes of a command's footer.
struct ManualSection {
  std::string heading;  ///< empty for a paragraph without one
  std::vector<std::string> lines;
};

/// The sections of a footer. A line that ends with a colon opens one with that heading; an empty
/// line ends it.
[[nodiscard]] std::vector<ManualSection> sections_of(const std::string& footer);

/// Options of one heading, in the order of help.
using OptionGroup = std::pair<std::string, std::vector<OptionSummary>>;

/// The options of `command` by heading, without its positional arguments.
[[nodiscard]] std::vector<OptionGroup> option_groups(const CommandSummary& command);

/// "headroom analyze [OPTIONS] model". `path` is "headroom analyze".
[[nodiscard]] std::string synopsis_of(const CommandSummary& command, const std::string& path);

/// A manual page in roff (man(7)). `path` is "headroom analyze"; `others` are names of
/// pages to refer to.
[[nodiscard]] std::string manual_page(const CommandSummary& command, const std::string& path,
                                      const std::vector<std::string>& others);

/// docs/reference.md: the options of all commands.
[[nodiscard]] std::string manual_markdown(const CommandSummary& program);

}  // namespace headroom::cli
