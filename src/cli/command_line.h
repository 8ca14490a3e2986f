// The command line without its parser: commands and options as command files describe them. Only
// command_line.cpp includes CLI11, which takes seconds to compile.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headroom::cli {

/// A handle of an option that was added to a command.
class Option {
 public:
  explicit Option(CLI::Option& option) noexcept : option_(&option) {}

  /// Lists the option under this heading in help.
  Option& group(const std::string& heading);
  /// Makes the option mandatory.
  Option& require();
  /// Refuses the option together with `other`.
  Option& excludes(const Option& other);

  /// True if the command line has the option.
  [[nodiscard]] bool is_given() const;
  /// Its first long name: "--seq".
  [[nodiscard]] std::string name() const;

 private:
  CLI::Option* option_;
};

/// An option or argument as completion, manuals and the C API see it.
struct OptionSummary {
  std::string argument;                  ///< name of a positional argument; empty for an option
  std::vector<std::string> long_names;   ///< without "--"
  std::vector<std::string> short_names;  ///< without "-"
  std::vector<std::string> words;        ///< that it accepts; empty if it accepts anything
  std::string value;                     ///< the word for its value in help: "FILE", "a|b|c"
  std::string group;                     ///< heading in help
  std::string description;
  bool has_value = false;
  bool is_required = false;
};

struct CommandSummary {
  std::string name;
  std::string description;
  std::string footer;  ///< text below the options in help: examples and notes
  std::vector<OptionSummary> options;
  std::vector<CommandSummary> subcommands;
};

/// A key of a configuration file with its values; a key of a section is "section.key".
struct ConfigurationEntry {
  std::string key;
  std::vector<std::string> values;
};

/// The entries of TOML's simple form: `key = "value"`, `key = ["a", "b"]`, comments, sections. A
/// line without "=" is a key of that name. Throws Error{invalid_input} naming `file` and the line.
[[nodiscard]] std::vector<ConfigurationEntry> parse_configuration(const std::string& text,
                                                                  const std::string& file);

/// Receives the value of an option. Reports a bad one with `refuse_value`.
using SetText = std::function<void(const std::string& text)>;
using SetList = std::function<void(const std::vector<std::string>& words)>;

/// Throws the usage error "OPTION: `message`". `names` may hold several spellings: the first
/// counts.
[[noreturn]] void refuse_value(const std::string& names, const std::string& message);

/// Throws Error{invalid_input} "OPTION `reason`" for the first of `options` that was given.
void refuse_given(const std::vector<Option>& options, const std::string& reason,
                  const std::string& hint);

/// An option and the value that it gets.
struct OptionValue {
  std::string name;   ///< "--tp"
  std::string value;  ///< empty: left out
};

/// Options with a value that the running command was not given, by long name: "batch".
[[nodiscard]] const std::vector<std::string>& options_left_out();
/// Takes `names` from options_left_out(): other options of the command determine their values. Also
/// for setters of options, which run before the command.
void count_as_given(const std::vector<std::string>& names);

/// A handle of a command. `names` of options are spellings such as "--seq,-s"; `value` is the word
/// for the value in help, such as "FILE", or the accepted words, "a|b|c".
class Command {
 public:
  explicit Command(CLI::App& app) noexcept : app_(&app) {}

  Command add_command(const std::string& name, const std::string& description);
  /// Allows to leave out the subcommand.
  void make_subcommand_optional();

  /// A required positional argument.
  void add_argument(const std::string& name, const std::string& value, const SetText& set,
                    const std::string& description);
  /// A positional argument that may be left out.
  Option add_optional_argument(const std::string& name, const std::string& value,
                               std::string& target, const std::string& description);
  /// One to `most` positional arguments; 0 is unlimited.
  void add_arguments(const std::string& name, const std::string& value,
                     std::vector<std::string>& target, int most, const std::string& description);
  Option add_text(const std::string& names, const std::string& value, const SetText& set,
                  const std::string& description);
  Option add_text(const std::string& names, const std::string& value, std::string& target,
                  const std::string& description);
  /// An option whose value may be left out: `set` then gets an empty text.
  Option add_optional_text(const std::string& names, const std::string& value, const SetText& set,
                           const std::string& description);
  /// Words with commas between them.
  Option add_list(const std::string& names, const std::string& value, const SetList& set,
                  const std::string& description);
  Option add_flag(const std::string& names, bool& target, const std::string& description);

  /// Text below the options in help.
  void set_footer(const std::string& text);
  /// Runs `action` once the command is parsed.
  void on_run(std::function<void()> action);
  [[nodiscard]] bool is_parsed() const;
  /// The parsed command line with the options of `changes` set, as a user would type it.
  [[nodiscard]] std::string restated(const std::vector<OptionValue>& changes) const;
  /// Leaves the command out of help, completion and manuals.
  void hide();
  /// The command as it stands now, with its subcommands but the hidden ones.
  [[nodiscard]] CommandSummary summary() const;

 private:
  CLI::App* app_;
};

/// The program: the root command, and its parser.
class Application {
 public:
  Application(const std::string& name, const std::string& description, const std::string& version);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  [[nodiscard]] Command root() const { return Command(*app_); }
  /// Parses `arguments`, without the program's name, and runs their command; prints help or version
  /// if they ask for it. Throws Error{invalid_input} for unknown or bad arguments, with the closest
  /// known word as a hint.
  void run(const std::vector<std::string>& arguments);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace headroom::cli
