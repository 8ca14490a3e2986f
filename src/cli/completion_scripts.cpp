// Completion scripts. bash and zsh share their tables: `place` is the command so far, `choices` and
// `files` what may follow.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "completion_words.h"

namespace headroom::cli {
namespace {

/// The profile of this machine is called here.
constexpr std::string_view kLookups = R"({0}presets{1}
  headroom presets list --format csv 2>/dev/null | tail -n +2 | cut -d, -f1,5 | tr ', ' '\n\n'
{2}
{0}machines{1}
  echo here
  headroom machines list --format csv 2>/dev/null | tail -n +2 | cut -d, -f1 | grep -v '^here:'
{2}
)";

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string last_word(const std::string& path) {
  const std::size_t blank = path.rfind(' ');
  return blank == std::string::npos ? path : path.substr(blank + 1);
}

std::string names_of(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CompletedCommand& command : commands) names.push_back(last_word(command.path));
  return joined(names);
}

std::string names_of(const std::vector<CompletedOption>& options) {
  std::vector<std::string> names;
  for (const CompletedOption& option : options) {
    for (const std::string& name : option.long_names) names.push_back("--" + name);
  }
  return joined(names);
}

template <class Visit>
void for_each_command(const CompletedCommand& program, const Visit& visit) {
  visit(program);
  for (const CompletedCommand& command : program.commands) for_each_command(command, visit);
}

/// Assignments of `choices` and `files`.
std::string assignments(const Candidates& candidates, const std::string& more_words) {
  std::string words = joined(candidates.words);
  if (!more_words.empty()) words += (words.empty() ? "" : " ") + more_words;
  switch (candidates.lookup) {
    case Lookup::none:
      break;
    case Lookup::presets:
      words += (words.empty() ? "" : " ") + std::string("$(_headroom_presets)");
      break;
    case Lookup::machines:
      words += (words.empty() ? "" : " ") + std::string("$(_headroom_machines)");
      break;
  }
  return fmt::format("choices=\"{}\"{}", words, candidates.files ? " files=1" : "");
}

/// The cases of one `case "$place $before"`: options with equal candidates share one.
std::string value_cases(const CompletedCommand& program) {
  std::vector<std::pair<Candidates, std::string>> cases;
  for_each_command(program, [&](const CompletedCommand& command) {
    for (const CompletedOption& option : command.options) {
      if (!option.has_value) continue;
      auto found = std::ranges::find_if(
          cases, [&](const auto& one) { return one.first == option.candidates; });
      if (found == cases.end()) found = cases.insert(found, {option.candidates, {}});
      std::string& patterns = found->second;
      const auto add = [&](const std::string& name) {
        patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", command.path, name);
      };
      for (const std::string& name : option.long_names) add("--" + name);
      for (const std::string& name : option.short_names) add("-" + name);
    }
  });
  std::string text;
  for (const auto& [candidates, patterns] : cases) {
    text += fmt::format("    ({}) {} ;;\n", patterns, assignments(candidates, {}));
  }
  return text;
}

/// The cases of `case $place`.
std::string argument_cases(const CompletedCommand& program, bool of_options) {
  std::string text;
  for_each_command(program, [&](const CompletedCommand& command) {
    const std::string choices = of_options
                                    ? fmt::format("choices=\"{}\"", names_of(command.options))
                                    : assignments(command.arguments, names_of(command.commands));
    text += fmt::format("        ('{}') {} ;;\n", command.path, choices);
  });
  return text;
}

/// Patterns of "$place $word" that are a command.
std::string place_patterns(const CompletedCommand& program) {
  std::string patterns;
  for_each_command(program, [&](const CompletedCommand& command) {
    if (command.path.empty()) return;
    const bool is_nested = command.path.find(' ') != std::string::npos;
    patterns +=
        fmt::format("{}'{}{}'", patterns.empty() ? "" : "|", is_nested ? "" : " ", command.path);
  });
  return patterns;
}

/// Sets `choices` and `files` from `place`, `before` and `word`.
std::string choose(const CompletedCommand& program) {
  return fmt::format(R"sh(  case "$place $before" in
{}    (*)
      if [[ $word == -* ]]; then
        case $place in
{}        esac
      else
        case $place in
{}        esac
      fi ;;
  esac
)sh",
                     value_cases(program), argument_cases(program, true),
                     argument_cases(program, false));
}

std::string shell_lookups() {
  return fmt::format(fmt::runtime(kLookups), "_headroom_", "() {", "}");
}

/// `text` in single quotes of fish.
std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

/// The condition under which a command's completions apply.
std::string fish_condition(const CompletedCommand& command) {
  if (command.path.empty()) return "__fish_use_subcommand";
  std::string condition;
  std::string rest = command.path + " ";
  for (std::size_t blank = rest.find(' '); blank != std::string::npos; blank = rest.find(' ')) {
    condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                             rest.substr(0, blank));
    rest.erase(0, blank + 1);
  }
  return condition;
}

/// The arguments of `complete` that offer these candidates.
std::string fish_candidates(const Candidates& candidates) {
  std::vector<std::string> words = candidates.words;
  switch (candidates.lookup) {
    case Lookup::none:
      break;
    case Lookup::presets:
      words.emplace_back("(__headroom_presets)");
      break;
    case Lookup::machines:
      words.emplace_back("(__headroom_machines)");
      break;
  }
  const std::string list = words.empty() ? "" : " -a " + fish_quoted(joined(words));
  return (candidates.files ? " -F" : " -f") + list;
}

std::string fish_option(const CompletedOption& option, const std::string& start) {
  std::string line = start;
  for (const std::string& name : option.long_names) line += " -l " + name;
  for (const std::string& name : option.short_names) line += " -s " + name;
  if (option.has_value) line += " -r" + fish_candidates(option.candidates);
  return fmt::format("{} -d {}\n", line, fish_quoted(option.description));
}

}  // namespace

std::string bash_completion(const CompletedCommand& program) {
  return fmt::format(R"bash(# bash completion of headroom: source <(headroom completion bash)
{}_headroom() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local place='' choices='' files='' i
  if [[ $word == '=' ]]; then  # --seq=8K is three words
    word=''
  elif [[ $before == '=' ]]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place ${{COMP_WORDS[i]}}" in
      ({}) place="${{place:+$place }}${{COMP_WORDS[i]}}" ;;
    esac
  done
{}  COMPREPLY=($(compgen -W "$choices" -- "$word"))
  if [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -f -- "$word"))
  fi
}}
complete -F _headroom headroom
)bash",
                     shell_lookups(), place_patterns(program), choose(program));
}

std::string zsh_completion(const CompletedCommand& program) {
  return fmt::format(R"zsh(# zsh completion of headroom: source <(headroom completion zsh)
{}_headroom() {{
  local word=$words[CURRENT] before=$words[CURRENT-1]
  local place='' choices='' files='' i
  if [[ $word == --*=* ]]; then
    before=${{word%%=*}}
    word=${{word#*=}}
    compset -P '*='
  fi
  for ((i = 2; i < CURRENT; i++)); do
    case "$place $words[i]" in
      ({}) place="${{place:+$place }}$words[i]" ;;
    esac
  done
{}  compadd -- ${{=choices}}
  if [[ $files ]]; then _files; fi
}}
if [[ ${{funcstack[1]-}} == _headroom ]]; then  # autoloaded
  _headroom "$@"
else
  (( $+functions[compdef] )) || {{ autoload -U compinit && compinit }}
  compdef _headroom headroom
fi
)zsh",
                     shell_lookups(), place_patterns(program), choose(program));
}

std::string fish_completion(const CompletedCommand& program) {
  std::string script = "# fish completion of headroom: headroom completion fish | source\n" +
                       fmt::format(fmt::runtime(kLookups), "function __headroom_", "", "end") +
                       "complete -c headroom -f\n";
  for_each_command(program, [&](const CompletedCommand& command) {
    const std::string start =
        fmt::format("complete -c headroom -n {}", fish_quoted(fish_condition(command)));
    for (const CompletedCommand& nested : command.commands) {
      script += fmt::format("{} -f -a {} -d {}\n", start, last_word(nested.path),
                            fish_quoted(nested.description));
    }
    const Candidates none;
    if (command.arguments != none) script += start + fish_candidates(command.arguments) + "\n";
    for (const CompletedOption& option : command.options) script += fish_option(option, start);
  });
  return script;
}

}  // namespace headroom::cli
