// headroom completion bash|zsh|fish: completion of commands, options, their words and presets,
// generated from the application's own options.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "options.h"

namespace headroom::cli {
namespace {

enum class Shell { bash, zsh, fish };

/// Presets are listed when a name is completed, since users can add their own.
constexpr std::string_view kListPresets =
    "headroom presets list --format csv 2>/dev/null | tail -n +2 | cut -d, -f1,5 | tr ', ' "
    "'\\n\\n'";

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string names_of(const std::vector<CommandSummary>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandSummary& command : commands) names.push_back(command.name);
  return joined(names);
}

/// Options and subcommands of a command.
std::string arguments_of(const CommandSummary& command) {
  std::vector<std::string> words;
  for (const OptionSummary& option : command.options) {
    for (const std::string& name : option.long_names) words.push_back("--" + name);
  }
  const std::string subcommands = names_of(command.subcommands);
  if (!subcommands.empty()) words.push_back(subcommands);
  return joined(words);
}

/// Calls `visit` with every long option of every command.
template <class Visit>
void for_each_option(const std::vector<CommandSummary>& commands, Visit visit) {
  for (const CommandSummary& command : commands) {
    for (const OptionSummary& option : command.options) {
      for (const std::string& name : option.long_names) visit(command, option, name);
    }
  }
}

/// A case for every option with a list of words; options of the same name have the same words.
std::string bash_values(const std::vector<CommandSummary>& commands) {
  std::string cases;
  std::vector<std::string> done;
  for_each_option(
      commands, [&](const CommandSummary&, const OptionSummary& option, const std::string& name) {
        if (option.words.empty() || std::ranges::find(done, name) != done.end()) return;
        done.push_back(name);
        cases += fmt::format("    --{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                             name, joined(option.words));
      });
  return cases;
}

std::string bash_script(const std::vector<CommandSummary>& commands) {
  std::string arguments;
  for (const CommandSummary& command : commands) {
    arguments += fmt::format("    {}) words='{}' ;;\n", command.name, arguments_of(command));
  }
  return fmt::format(R"bash(# bash completion of headroom: source <(headroom completion bash)
_headroom() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=''
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word")); return
  fi
  case $before in
{}    --output|-o) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words $({})" -- "$word" | grep -v '^--') $(compgen -f -- "$word"))
  fi
}}
complete -F _headroom headroom
)bash",
                     names_of(commands), bash_values(commands), arguments, kListPresets);
}

std::string fish_script(const std::vector<CommandSummary>& commands) {
  std::string script = "# fish completion of headroom: headroom completion fish | source\n";
  for (const CommandSummary& command : commands) {
    script += fmt::format("complete -c headroom -n __fish_use_subcommand -a {} -d '{}'\n",
                          command.name, command.description);
  }
  for_each_option(commands, [&](const CommandSummary& command, const OptionSummary& option,
                                const std::string& name) {
    const std::string words =
        option.words.empty() ? "" : fmt::format(" -f -a '{}'", joined(option.words));
    script += fmt::format("complete -c headroom -n '__fish_seen_subcommand_from {}' -l {}{}{}\n",
                          command.name, name, option.has_value ? " -r" : "", words);
  });
  return script +
         fmt::format(
             "complete -c headroom -n '__fish_seen_subcommand_from analyze complexity explain "
             "diff fit plan sweep show' -a '({})'\n",
             kListPresets);
}

/// zsh runs bash completions through a compatibility layer.
std::string zsh_script(const std::vector<CommandSummary>& commands) {
  return "# zsh completion of headroom: source <(headroom completion zsh)\n"
         "autoload -U +X compinit && compinit\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(commands);
}

std::string completion_script(const std::vector<CommandSummary>& commands, Shell shell) {
  switch (shell) {
    case Shell::bash:
      return bash_script(commands);
    case Shell::zsh:
      return zsh_script(commands);
    case Shell::fish:
      break;
  }
  return fish_script(commands);
}

}  // namespace

void add_completion(Command root) {
  const Choices<Shell> shells{{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};
  auto shell = std::make_shared<Shell>(Shell::bash);
  Command command = root.add_command("completion", "Print a completion script for a shell");
  const auto set = [shell, shells](const std::string& word) {
    *shell = value_of("shell", word, shells);
  };
  command.add_argument("shell", listed(shells), set, "The shell");
  command.set_footer(
      "Examples:\n"
      "  source <(headroom completion bash)\n"
      "  headroom completion fish > ~/.config/fish/completions/headroom.fish");
  command.on_run([shell, root] {
    write_output(completion_script(root.summary().subcommands, *shell), {}, {});
  });
}

}  // namespace headroom::cli
