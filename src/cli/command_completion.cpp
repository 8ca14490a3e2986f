// headroom completion bash|zsh|fish: completion of commands, options, their values, presets and
// machines.
#include <memory>

#include "commands.h"
#include "completion_words.h"
#include "options.h"

namespace headroom::cli {
namespace {

enum class Shell { bash, zsh, fish };

std::string completion_script(const CompletedCommand& program, Shell shell) {
  switch (shell) {
    case Shell::bash:
      return bash_completion(program);
    case Shell::zsh:
      return zsh_completion(program);
    case Shell::fish:
      break;
  }
  return fish_completion(program);
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
    write_output(completion_script(completed_program(root.summary()), *shell), {}, {});
  });
}

}  // namespace headroom::cli
