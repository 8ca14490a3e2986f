// The command line: parses, runs one command, and turns every error into a message and a status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "commands.h"
#include "headroom/error.h"
#include "plan_violations.h"
#include "similar.h"
#include "version.h"

namespace headroom::cli {
namespace {

void print_error(const Error& error) {
  fmt::print(stderr, "headroom: error: {}\n", error.what());
  if (!error.hint().empty()) fmt::print(stderr, "  hint: {}\n", error.hint());
}

void add_commands(CLI::App& app, int& status) {
  app.set_version_flag("--version", std::string("headroom ") + kVersion);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default(false);
  add_analyze(app);
  add_explain(app);
  add_diff(app);
  add_measure(app);
  add_compare(app, status);
  add_complexity(app);
  add_inspect(app, status);
  add_fit(app);
  add_plan(app);
  add_sweep(app);
  add_calibrate(app);
  add_machines(app);
  add_presets(app);
  add_completion(app);
  app.footer(
      "Examples:\n"
      "  headroom analyze bert-base\n"
      "  headroom explain gpt2 --what params\n"
      "  headroom compare bert-base\n"
      "  headroom diff llama-2-7b llama-3-8b --dtype bf16\n"
      "\n"
      "Exit status: 0 fine, 1 a verdict failed, 2 usage or bad input, 3 memory or a file is\n"
      "missing, 4 a defect of headroom.");
}

/// All words that may stand where a mistyped one does: options and commands of `app`.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands({})) words.push_back(command->get_name());
  return words;
}

/// The innermost command that was recognised before parsing failed.
const CLI::App& deepest_parsed(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->parsed()) return deepest_parsed(*command);
  }
  return app;
}

/// The argument that `command` has no place for; empty when something else is wrong.
std::string unknown_argument(const CLI::App& app, const CLI::App& command,
                             const std::vector<std::string>& arguments) {
  if (&command == &app && !arguments.empty() && !arguments.front().starts_with("-")) {
    return arguments.front();
  }
  const bool takes_command = !command.get_subcommands({}).empty();
  const std::vector<std::string> known = known_words(command);
  for (const std::string& argument : arguments) {
    std::string word = argument.substr(0, argument.find('='));
    const bool is_known = std::find(known.begin(), known.end(), word) != known.end();
    const bool could_be_value = !word.starts_with("--") && !takes_command;
    if (!is_known && !could_be_value && word != command.get_name()) return word;
  }
  return {};
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& arguments) {
  const CLI::App& command = deepest_parsed(app);
  const std::string unknown = unknown_argument(app, command, arguments);
  std::string hint = detail::did_you_mean(unknown, known_words(command));
  if (hint.empty()) {
    const std::string name = &command == &app ? "" : " " + command.get_name();
    hint = fmt::format("`headroom{} --help` shows what is possible", name);
  }
  const std::string message = unknown.empty()
                                  ? std::string(error.what())
                                  : fmt::format("\"{}\" is not understood here", unknown);
  return {ErrorCode::invalid_input, message, {}, hint};
}

int run(const std::vector<std::string>& arguments) {
  CLI::App app("headroom tells what a transformer costs: parameters, FLOPs, memory, KV-cache.",
               "headroom");
  int status = 0;
  add_commands(app, status);
  try {
    // CLI11 takes its arguments from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (asked_for) return app.exit(error);
    throw usage_error(app, error, arguments);
  }
  return status;
}

}  // namespace
}  // namespace headroom::cli

int main(int argc, char** argv) {
  using namespace headroom;
  try {
    return cli::run({argv + 1, argv + argc});
  } catch (const Error& error) {
    cli::print_error(cli::with_plan_options(error));
    return exit_status(error.code());
  } catch (const std::bad_alloc&) {
    cli::print_error({ErrorCode::missing_resource, "not enough memory"});
    return exit_status(ErrorCode::missing_resource);
  } catch (const std::exception& error) {
    cli::print_error({ErrorCode::internal, error.what(), {}, "this is a defect; please report it"});
    return exit_status(ErrorCode::internal);
  }
}
