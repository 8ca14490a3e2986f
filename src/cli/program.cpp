#include "program.h"

#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string_view>
#include <utility>

#include "commands.h"
#include "headroom/no_plan_fits.h"
#include "output.h"
#include "plan_violations.h"
#include "setting_options.h"
#include "utf8.h"
#include "version.h"

namespace headroom::cli {
namespace {

Application make_application() {
  return {"headroom", "Count what a transformer costs: parameters, FLOPs, memory, KV-cache, time.",
          std::string("headroom ") + kVersion};
}

/// Adds the commands, and what the help of the program says after them.
void fill(Command root, int& status) {
  add_commands(root, status);
  root.set_footer(
      "Examples:\n"
      "  headroom analyze bert-base\n"
      "  headroom explain gpt2 --what params\n"
      "  headroom compare bert-base\n"
      "  headroom diff llama-2-7b llama-3-8b --dtype bf16\n"
      "\n"
      "Configuration:\n"
      "  ~/.config/headroom.toml, or the file that HEADROOM_CONFIG names, sets default\n"
      "  options and folders of your own presets and machines: machine = \"h100-80gb\".\n"
      "  HEADROOM_MACHINE, HEADROOM_THREADS, HEADROOM_FORMAT, HEADROOM_PRESETS and\n"
      "  HEADROOM_MACHINES override it. headroom system shows the values.\n"
      "\n"
      "Exit status:\n"
      "  0  success\n"
      "  1  the answer is no: a verdict failed, or no plan fits\n"
      "  2  usage or bad input\n"
      "  3  out of memory, or a file is missing or cannot be read or written\n"
      "  4  a bug in headroom\n"
      "  128 + N  signal N ended the run");
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const UserSettings& settings) {
  use_settings(settings);
  Application application = make_application();
  int status = 0;
  fill(application.root(), status);
  set_invocation(arguments);
  application.run(arguments);
  return status;
}

CommandSummary describe_program() {
  const Application application = make_application();
  int status = 0;
  fill(application.root(), status);
  return application.root().summary();
}

int print_error(const Error& error) {
  write_labelled("headroom: error: ", detail::printable(with_options(error.what())));
  std::string_view label = "  hint: ";
  std::istringstream hint(with_options(error.hint()));
  for (std::string line; std::getline(hint, line);) {
    if (line.empty()) continue;
    write_labelled(std::string(std::exchange(label, "        ")), detail::printable(line));
  }
  return exit_status(error.code());
}

Error current_error() {
  try {
    throw;
  } catch (const IllegalPlan& error) {
    return with_options(error);
  } catch (const NoLegalPlan& error) {
    return with_options(error);
  } catch (const Error& error) {
    return error;
  } catch (const std::filesystem::filesystem_error& error) {
    return {ErrorCode::missing_resource, error.code().message(), error.path1().string(),
            "check the path, its permissions, and that the working directory exists"};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::missing_resource, "out of memory"};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, error.what(), {}, "this is a bug in headroom: please report it"};
  }
}

int current_status() {
  try {
    throw;
  } catch (const NoPlanFits&) {
    return 1;
  } catch (...) {
    return exit_status(current_error().code());
  }
}

}  // namespace headroom::cli
