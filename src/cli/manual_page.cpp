// Manual pages in roff, for man(1).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "manual.h"
#include "version.h"

namespace headroom::cli {
namespace {

/// `text` without roff's special characters. A plain "-" would print as a hyphen, which no shell
/// takes for an option.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  const bool is_request = escaped.starts_with('.') || escaped.starts_with('\'');
  return is_request ? "\\&" + escaped : escaped;
}

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// "headroom-analyze" for "headroom analyze".
std::string page_name(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

/// The words may break after "|", which is where long lists of them must.
std::string roff_value(const std::string& value) {
  std::string text;
  for (const char c : roff(value)) text += c == '|' ? std::string("|\\:") : std::string(1, c);
  return text;
}

std::string option_item(const OptionSummary& option) {
  std::string names;
  for (const std::string& name : option.short_names) {
    names += fmt::format("{}\\fB\\-{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  for (const std::string& name : option.long_names) {
    names += fmt::format("{}\\fB\\-\\-{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  if (!option.argument.empty()) names = fmt::format("\\fI{}\\fR", roff(option.argument));
  if (option.has_value && option.argument.empty()) {
    names += fmt::format(" \\fI{}\\fR", roff_value(option.value));
  }
  return fmt::format(".TP\n{}\n{}\n", names, roff(option.description));
}

std::string arguments_section(const CommandSummary& command) {
  std::string items;
  for (const OptionSummary& option : command.options) {
    if (!option.argument.empty()) items += option_item(option);
  }
  return items.empty() ? items : ".SH ARGUMENTS\n" + items;
}

std::string options_section(const CommandSummary& command) {
  std::string text = ".SH OPTIONS\n";
  for (const auto& [heading, options] : option_groups(command)) {
    if (heading != "Options") text += fmt::format(".SS {}\n", roff(heading));
    for (const OptionSummary& option : options) text += option_item(option);
  }
  return text;
}

std::string commands_section(const CommandSummary& command) {
  if (command.subcommands.empty()) return {};
  std::string text = ".SH COMMANDS\n";
  for (const CommandSummary& nested : command.subcommands) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(nested.name), roff(nested.description));
  }
  return text;
}

/// Options of nested commands, which have no pages of their own.
std::string nested_options(const CommandSummary& command, const std::string& path) {
  std::string text;
  for (const CommandSummary& nested : command.subcommands) {
    text += fmt::format(".SS {}\n", roff(synopsis_of(nested, path + " " + nested.name)));
    for (const OptionSummary& option : nested.options) text += option_item(option);
  }
  return text;
}

std::string footer_sections(const std::string& footer) {
  std::string text;
  for (const ManualSection& section : sections_of(footer)) {
    const std::string heading = section.heading.empty() ? "Notes" : section.heading;
    text += fmt::format(".SH {}\n.nf\n", upper_case(roff(heading)));
    for (const std::string& line : section.lines) text += roff(line) + "\n";
    text += ".fi\n";
  }
  return text;
}

std::string see_also(const std::vector<std::string>& others) {
  if (others.empty()) return {};
  std::string text = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < others.size(); ++i) {
    text += fmt::format(".BR {} (1){}\n", roff(others[i]), i + 1 == others.size() ? "" : ",");
  }
  return text;
}

}  // namespace

std::string manual_page(const CommandSummary& command, const std::string& path,
                        const std::vector<std::string>& others) {
  const bool is_program = path.find(' ') == std::string::npos;
  std::string text = fmt::format(".TH {} 1 \"\" \"headroom {}\" \"User Commands\"\n",
                                 roff(upper_case(page_name(path))), kVersion);
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(page_name(path)), roff(command.description));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR\n", roff(synopsis_of(command, path)));
  text += commands_section(command);
  text += arguments_section(command);
  text += options_section(command);
  if (!is_program) text += nested_options(command, path);
  return text + footer_sections(command.footer) + see_also(others);
}

}  // namespace headroom::cli
