// Reads the configuration file: TOML without dates, inline tables, multi-line strings and tables in
// lists, which no setting needs.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "headroom/error.h"

namespace headroom::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

class ConfigurationReader {
 public:
  ConfigurationReader(std::string_view text, const std::string& file) : text_(text), file_(&file) {}

  std::vector<ConfigurationEntry> read() {
    std::vector<ConfigurationEntry> entries;
    while (skip_to_content()) {
      if (next() == '[') {
        section_ = read_section();
      } else {
        entries.push_back(read_entry());
      }
      end_line();
    }
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error(ErrorCode::invalid_input, fmt::format("line {}: {}", line_, what), *file_, hint);
  }

  [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
  [[nodiscard]] char next() const noexcept { return at_end() ? '\n' : text_[at_]; }

  char take() {
    const char letter = next();
    if (letter == '\n') ++line_;
    if (!at_end()) ++at_;
    return letter;
  }

  void skip_blanks() {
    while (!at_end() && kBlanks.find(next()) != std::string_view::npos) take();
  }

  void skip_comment() {
    if (next() != '#') return;
    while (next() != '\n') take();
  }

  /// Skips blanks, comments and empty lines. Returns false at the end of the text.
  bool skip_to_content() {
    for (;;) {
      skip_blanks();
      skip_comment();
      if (at_end()) return false;
      if (next() != '\n') return true;
      take();
    }
  }

  /// Refuses text between a value and the end of its line.
  void end_line() {
    skip_blanks();
    skip_comment();
    if (next() != '\n') {
      fail(fmt::format("text after the value, from \"{}\"", next()),
           "write one key = value on a line; quote a value that has blanks");
    }
  }

  /// Text up to one of `ends`, or to the end of the line.
  std::string take_until(std::string_view ends) {
    const std::size_t start = at_;
    while (next() != '\n' && ends.find(next()) == std::string_view::npos) take();
    return trimmed(text_.substr(start, at_ - start));
  }

  std::string read_section() {
    take();
    std::string name = take_until("]#");
    if (take() != ']') fail("a section's name has no \"]\"", "the settings are in no section");
    return name + ".";
  }

  ConfigurationEntry read_entry() {
    ConfigurationEntry entry{section_ + take_until("=#"), {}};
    if (next() != '=') return entry;
    take();
    skip_blanks();
    if (next() == '[') {
      entry.values = read_list();
    } else {
      entry.values.push_back(read_value("#"));
    }
    return entry;
  }

  std::vector<std::string> read_list() {
    std::vector<std::string> values;
    take();
    for (;;) {
      if (!skip_to_content()) fail("a list has no \"]\"", "close it, as in [\"a\", \"b\"]");
      if (next() == ']') break;
      values.push_back(read_value(",]#"));
      (void)skip_to_content();
      if (next() == ',') {
        take();
      } else if (next() != ']') {
        fail("a list has no \",\" between its values", "write [\"a\", \"b\"]");
      }
    }
    take();
    return values;
  }

  /// A quoted text, or a bare one up to one of `ends`.
  std::string read_value(std::string_view ends) {
    const char quote = next();
    if (quote != '"' && quote != '\'') return take_until(ends);
    take();
    std::string value;
    while (next() != quote) {
      if (next() == '\n') fail("a text has no closing quote", "close it on its line");
      const bool escapes = quote == '"' && next() == '\\';
      value += escapes ? read_escape() : take();
    }
    take();
    return value;
  }

  char read_escape() {
    take();
    const char letter = take();
    switch (letter) {
      case '"':
      case '\\':
        return letter;
      case 't':
        return '\t';
      case 'n':
        return '\n';
      default:  // any other byte
        fail(fmt::format("the escape \"\\{}\" is unknown", letter),
             "write \\\\ for a backslash, or single quotes around the text");
    }
  }

  std::string_view text_;
  const std::string* file_;
  std::string section_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::vector<ConfigurationEntry> parse_configuration(const std::string& text,
                                                    const std::string& file) {
  return ConfigurationReader(text, file).read();
}

}  // namespace headroom::cli
