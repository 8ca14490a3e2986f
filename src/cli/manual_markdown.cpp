// docs/reference.md, and what manual pages and it have in common.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "manual.h"

namespace headroom::cli {
namespace {

/// `text` in a cell of a table.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

/// Accepted words as a list, any other word for a value as it is.
std::string value_cell(const OptionSummary& option) {
  if (!option.has_value) return {};
  if (option.words.empty()) return cell(option.value);
  return fmt::format("`{}`", fmt::join(option.words, "`, `"));
}

std::string names_cell(const OptionSummary& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.long_names) names.push_back("--" + name);
  for (const std::string& name : option.short_names) names.push_back("-" + name);
  if (!option.argument.empty()) names = {option.argument};
  return fmt::format("`{}`", fmt::join(names, "`, `"));
}

std::string rows_of(const std::vector<OptionSummary>& options) {
  std::string rows;
  for (const OptionSummary& option : options) {
    rows += fmt::format("| {} | {} | {} |\n", names_cell(option), value_cell(option),
                        cell(option.description));
  }
  return rows;
}

std::string table_of(const CommandSummary& command) {
  std::vector<OptionSummary> arguments;
  std::ranges::copy_if(command.options, std::back_inserter(arguments),
                       [](const OptionSummary& option) { return !option.argument.empty(); });
  std::string text = "| Option | Value | Meaning |\n| :-- | :-- | :-- |\n" + rows_of(arguments);
  for (const auto& [heading, options] : option_groups(command)) {
    if (heading != "Options") text += fmt::format("| **{}** |  |  |\n", heading);
    text += rows_of(options);
  }
  return text;
}

std::string chapter_of(const CommandSummary& command, const std::string& path) {
  std::string text = fmt::format("\n## {}\n\n{}.\n\n```\n{}\n```\n\n{}", path, command.description,
                                 synopsis_of(command, path), table_of(command));
  for (const CommandSummary& nested : command.subcommands) {
    text += chapter_of(nested, path + " " + nested.name);
  }
  return text;
}

}  // namespace

std::vector<ManualSection> sections_of(const std::string& footer) {
  std::vector<ManualSection> sections;
  bool is_open = false;
  std::istringstream text(footer);
  for (std::string line; std::getline(text, line);) {
    const bool is_heading = line.ends_with(':') && !line.starts_with(' ');
    if (is_heading) {
      sections.push_back({line.substr(0, line.size() - 1), {}});
    } else if (!line.empty()) {
      if (!is_open) sections.emplace_back();
      sections.back().lines.push_back(line);
    }
    is_open = !line.empty();
  }
  return sections;
}

std::vector<OptionGroup> option_groups(const CommandSummary& command) {
  std::vector<OptionGroup> groups;
  for (const OptionSummary& option : command.options) {
    if (!option.argument.empty() || option.group.empty()) continue;
    auto found = std::ranges::find(groups, option.group, &OptionGroup::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {option.group, {}});
    found->second.push_back(option);
  }
  return groups;
}

std::string synopsis_of(const CommandSummary& command, const std::string& path) {
  std::string text = path + " [OPTIONS]";
  for (const OptionSummary& option : command.options) {
    if (option.argument.empty()) continue;
    text += option.is_required ? " " + option.argument : " [" + option.argument + "]";
  }
  if (command.subcommands.empty()) return text;
  const bool is_program = path.find(' ') == std::string::npos;
  return text + (is_program ? " COMMAND" : " [COMMAND]");
}

std::string manual_markdown(const CommandSummary& program) {
  std::string text =
      "# Reference: every command and option\n"
      "\n"
      "Every option, as in `--help`; this page and the manual pages are generated from it. [Shared "
      "options](options.md)\n"
      "explains options that many commands share.\n";
  for (const CommandSummary& command : program.subcommands) {
    text += chapter_of(command, program.name + " " + command.name);
  }
  return text;
}

}  // namespace headroom::cli
