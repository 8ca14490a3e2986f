// headroom completion bash|zsh|fish: a script that completes commands, options and presets, made
// from the application's own options so that it cannot fall behind them.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "options.h"

namespace headroom::cli {
namespace {

enum class Shell { bash, zsh, fish };

struct CompletionOptions {
  Shell shell = Shell::bash;
  OutputOptions output;
};

/// Presets are asked for when a name is completed: the user's own may have changed.
constexpr std::string_view kListPresets =
    "headroom presets list --format csv 2>/dev/null | tail -n +2 | cut -d, -f1,5 | tr ', ' "
    "'\\n\\n'";

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// The words that an option takes, out of its type name "a|b|c"; empty when it takes anything.
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find('|') == std::string::npos) return {};
  return CLI::detail::split(type, '|');
}

/// Calls `visit` once for every long option of any command.
template <class Visit>
void for_each_option(const CLI::App& app, Visit visit) {
  for (const CLI::App* command : app.get_subcommands({})) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) visit(*command, *option, name);
    }
  }
}

std::string bash_script(const CLI::App& app) {
  std::string values;
  std::vector<std::string> done;
  for_each_option(app, [&](const CLI::App&, const CLI::Option& option, const std::string& name) {
    const auto words = words_of(option);
    if (words.empty() || std::find(done.begin(), done.end(), name) != done.end()) return;
    done.push_back(name);
    values += fmt::format("    --{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                          name, joined(words));
  });
  std::string options;
  for (const CLI::App* command : app.get_subcommands({})) {
    std::vector<std::string> words = option_names(*command);
    const auto nested = subcommand_names(*command);
    words.insert(words.end(), nested.begin(), nested.end());
    options += fmt::format("    {}) words='{}' ;;\n", command->get_name(), joined(words));
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
                     joined(subcommand_names(app)), values, options, kListPresets);
}

std::string fish_script(const CLI::App& app) {
  std::string script = "# fish completion of headroom: headroom completion fish | source\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    script += fmt::format("complete -c headroom -n __fish_use_subcommand -a {} -d '{}'\n",
                          command->get_name(), command->get_description());
  }
  for_each_option(app, [&](const CLI::App& command, const CLI::Option& option,
                           const std::string& name) {
    const auto words = words_of(option);
    script += fmt::format("complete -c headroom -n '__fish_seen_subcommand_from {}' -l {}{}{}\n",
                          command.get_name(), name, option.get_expected_max() == 0 ? "" : " -r",
                          words.empty() ? "" : fmt::format(" -f -a '{}'", joined(words)));
  });
  return script +
         fmt::format(
             "complete -c headroom -n '__fish_seen_subcommand_from analyze complexity explain "
             "diff fit plan sweep show' -a '({})'\n",
             kListPresets);
}

/// zsh runs bash completions through its own compatibility layer.
std::string zsh_script(const CLI::App& app) {
  return "# zsh completion of headroom: source <(headroom completion zsh)\n"
         "autoload -U +X compinit && compinit\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(app);
}

std::string script(const CLI::App& app, Shell shell) {
  switch (shell) {
    case Shell::bash:
      return bash_script(app);
    case Shell::zsh:
      return zsh_script(app);
    case Shell::fish:
      break;
  }
  return fish_script(app);
}

}  // namespace

void add_completion(CLI::App& root) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command = root.add_subcommand("completion", "Print a shell's completion script");
  add_choice<Shell>(*command, "shell", options->shell,
                    {{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}},
                    "The shell to complete in")
      ->required();
  command->footer(
      "Examples:\n"
      "  source <(headroom completion bash)\n"
      "  headroom completion fish > ~/.config/fish/completions/headroom.fish");
  command->callback([options, &root] { write_output(script(root, options->shell), {}, {}); });
}

}  // namespace headroom::cli
