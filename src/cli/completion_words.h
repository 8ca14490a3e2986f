// The candidates that shell completion offers, from the application's own options.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"

namespace headroom::cli {

/// Candidates that a shell looks up when a word is completed, since users can add their own.
enum class Lookup { none, presets, machines };

struct Candidates {
  std::vector<std::string> words;
  Lookup lookup = Lookup::none;
  bool files = false;
  bool operator==(const Candidates&) const = default;
};

/// An option; its candidates are those of its value.
struct CompletedOption {
  std::vector<std::string> long_names;   ///< without "--"
  std::vector<std::string> short_names;  ///< without "-"
  std::string description;
  bool has_value = false;
  Candidates candidates;
};

/// A command or subcommand.
struct CompletedCommand {
  std::string path;  ///< "machines show"; empty for the program
  std::string description;
  std::vector<CompletedCommand> commands;
  std::vector<CompletedOption> options;
  Candidates arguments;
};

/// The program with all its commands.
[[nodiscard]] CompletedCommand completed_program(const CommandSummary& program);

/// The completion scripts of bash, zsh and fish. The one of zsh is also the body of an autoloaded
/// function after a line "#compdef headroom".
[[nodiscard]] std::string bash_completion(const CompletedCommand& program);
[[nodiscard]] std::string zsh_completion(const CompletedCommand& program);
[[nodiscard]] std::string fish_completion(const CompletedCommand& program);

}  // namespace headroom::cli
