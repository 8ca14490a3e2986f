#include "help_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace headroom::cli {
namespace {

/// Where meanings begin, and the least room that they need.
constexpr std::size_t kIndent = 2;
constexpr std::size_t kMeaningColumn = 26;
constexpr std::size_t kDefaultWidth = 100;
constexpr std::size_t kLeastWidth = 60;

/// Groups that the usual help only names.
constexpr std::array<std::string_view, 6> kRarelyUsed{"KV-cache", "Machine",  "Scheduler",
                                                      "Serving",  "Training", "Types"};

bool is_rare(const HelpGroup& group) {
  return std::ranges::find(kRarelyUsed, group.title) != kRarelyUsed.end();
}

/// Columns of UTF-8 text without wide or combining characters.
std::size_t columns_of(std::string_view text) {
  const auto is_first = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::ranges::count_if(text, is_first));
}

/// Further lines of choices, and of examples.
constexpr std::size_t kFurtherIndent = 6;

/// "  --option a|b|" in lines that are broken after a bar.
std::string choices_broken(const std::string& words, std::size_t width) {
  std::string text;
  std::string line(kIndent, ' ');
  for (std::size_t start = 0; start < words.size();) {
    const std::size_t bar = words.find('|', start);
    const std::size_t end = bar == std::string::npos ? words.size() : bar + 1;
    if (columns_of(line) + end - start > width) {
      text += line + "\n";
      line.assign(kFurtherIndent, ' ');
    }
    line += words.substr(start, end - start);
    start = end;
  }
  return text + line;
}

/// An example in lines that a shell joins again.
std::string example_broken(std::string_view line, std::size_t width) {
  constexpr std::string_view kJoins = " \\";
  if (columns_of(line) <= width) return std::string(line);
  std::string text;
  std::string indent(line.find_first_not_of(' '), ' ');
  for (const std::string& part :
       wrapped_words(line.substr(indent.size()), width - kFurtherIndent - kJoins.size())) {
    if (!text.empty()) text += std::string(kJoins) + "\n";
    text += indent + part;
    indent.assign(kFurtherIndent, ' ');
  }
  return text;
}

void add_entry(const HelpEntry& entry, std::size_t width, std::string& text) {
  std::string line = std::string(kIndent, ' ') + entry.words;
  const bool fits = columns_of(line) + kIndent <= kMeaningColumn;
  if (!fits) {
    text += choices_broken(entry.words, width) + "\n";
    line.clear();
  }
  for (const std::string& part : wrapped_words(entry.meaning, width - kMeaningColumn)) {
    text += fmt::format("{:<{}}{}\n", std::exchange(line, std::string()), kMeaningColumn, part);
  }
  if (!line.empty()) text += line + "\n";
}

void add_group(const std::string& title, const std::vector<HelpEntry>& entries, std::size_t width,
               std::string& text) {
  if (entries.empty()) return;
  text += fmt::format("\n{}:\n", title);
  for (const HelpEntry& entry : entries) add_entry(entry, width, text);
}

std::string usage_of(const CommandHelp& help) {
  std::string usage = help.path;
  for (const HelpEntry& argument : help.arguments) usage += " " + argument.words;
  if (!help.commands.empty()) usage += " COMMAND";
  return usage + " [OPTIONS]";
}

/// Paragraphs of a footer are wrapped; indented lines, such as examples, stay whole.
void add_footer(std::string_view footer, std::size_t width, std::string& text) {
  while (!footer.empty()) {
    const std::size_t end = std::min(footer.find('\n'), footer.size());
    const std::string_view line = footer.substr(0, end);
    footer.remove_prefix(std::min(end + 1, footer.size()));
    if (line.empty() || line.starts_with(' ')) {
      text += example_broken(line, width) + "\n";
      continue;
    }
    for (const std::string& part : wrapped_words(line, width)) text += part + "\n";
  }
}

/// The part of a footer before and after its examples.
struct Footer {
  std::string examples;
  std::string rest;
};

Footer parted(const std::string& footer) {
  constexpr std::string_view kExamples = "Examples:\n";
  const std::size_t begin = footer.find(kExamples);
  if (begin == std::string::npos) return {{}, footer};
  const std::size_t blank = footer.find("\n\n", begin);
  const std::size_t end = blank == std::string::npos ? footer.size() : blank + 2;
  std::string before = footer.substr(0, begin);
  while (before.ends_with('\n')) before.pop_back();
  const std::string after = footer.substr(end);
  if (!before.empty() && !after.empty()) before += "\n\n";
  return {footer.substr(begin, blank == std::string::npos ? blank : blank - begin), before + after};
}

void add_rare_groups(const CommandHelp& help, std::size_t width, std::string& text) {
  std::vector<std::string> titles;
  for (const HelpGroup& group : help.groups) {
    if (is_rare(group)) titles.push_back(group.title);
  }
  if (titles.empty()) return;
  text += "\n";
  add_footer(fmt::format("More options with --help-all: {}.", fmt::join(titles, ", ")), width,
             text);
}

}  // namespace

std::vector<std::string> wrapped_words(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

std::string help_text(const CommandHelp& help, HelpScope scope, std::size_t width) {
  width = std::max(width == 0 ? kDefaultWidth : width, kLeastWidth);
  std::string text = fmt::format("{}\n\nUsage: {}\n", help.description, usage_of(help));
  const Footer footer = parted(help.footer);
  if (!footer.examples.empty()) {
    text += "\n";
    add_footer(footer.examples, width, text);
  }
  const auto is_described = [](const HelpEntry& entry) { return !entry.meaning.empty(); };
  std::vector<HelpEntry> arguments;
  std::ranges::copy_if(help.arguments, std::back_inserter(arguments), is_described);
  add_group("Arguments", arguments, width, text);
  add_group("Commands", help.commands, width, text);
  for (const HelpGroup& group : help.groups) {
    if (scope == HelpScope::all || !is_rare(group)) {
      add_group(group.title, group.entries, width, text);
    }
  }
  if (scope == HelpScope::usual) add_rare_groups(help, width, text);
  if (!footer.rest.empty()) {
    text += "\n";
    add_footer(footer.rest, width, text);
  }
  return text;
}

std::size_t error_terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;  // NOLINT
  return known ? size.ws_col : 0;
}

std::size_t terminal_width() {
  winsize size{};
  // ioctl is variadic, but nothing else reports a terminal's width.
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;  // NOLINT
  if (known && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe)
  if (columns == nullptr) return 0;
  char* end = nullptr;
  const unsigned long width = std::strtoul(columns, &end, 10);
  constexpr unsigned long kWidest = 10'000;
  return *end == '\0' && width <= kWidest ? width : 0;
}

}  // namespace headroom::cli
