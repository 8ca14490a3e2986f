#include "completion_words.h"

#include <algorithm>

namespace headroom::cli {
namespace {

/// Words in capitals, such as PATH in "PATH|random", stand for a value.
bool is_literal(const std::string& word) {
  return std::ranges::none_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == ' '; });
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

Candidates candidates_of(const OptionSummary& option) {
  Candidates candidates;
  std::ranges::copy_if(option.words, std::back_inserter(candidates.words), is_literal);
  const std::string& value = option.value;
  const bool is_price = contains(value, "PRICE");
  if (contains(value, "MACHINE") && !is_price) candidates.lookup = Lookup::machines;
  if (contains(value, "MODEL") || value == "LAYER" || value == "NAME") {
    candidates.lookup = Lookup::presets;
    candidates.files = value != "NAME";
  }
  for (const char* const file : {"FILE", "PATH", ".json"}) {
    if (contains(value, file)) candidates.files = true;
  }
  return candidates;
}

/// Adds the candidates of one more positional argument.
void merge(const Candidates& more, Candidates& all) {
  all.words.insert(all.words.end(), more.words.begin(), more.words.end());
  if (more.lookup != Lookup::none) all.lookup = more.lookup;
  all.files = all.files || more.files;
}

CompletedCommand completed(const CommandSummary& summary, const std::string& path) {
  CompletedCommand command{path, summary.description, {}, {}, {}};
  for (const OptionSummary& option : summary.options) {
    if (!option.argument.empty()) {
      merge(candidates_of(option), command.arguments);
      continue;
    }
    command.options.push_back({option.long_names, option.short_names, option.description,
                               option.has_value,
                               option.has_value ? candidates_of(option) : Candidates{}});
  }
  for (const CommandSummary& nested : summary.subcommands) {
    command.commands.push_back(
        completed(nested, path.empty() ? nested.name : path + " " + nested.name));
  }
  return command;
}

}  // namespace

CompletedCommand completed_program(const CommandSummary& program) { return completed(program, {}); }

}  // namespace headroom::cli
