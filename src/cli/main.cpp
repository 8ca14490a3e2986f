// Parses the command line, runs one command, and turns every error into a message and an exit
// status.
#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.h"
#include "headroom/error.h"
#include "plan_violations.h"
#include "setting_options.h"
#include "version.h"

namespace headroom::cli {
namespace {

int print_error(const Error& error) {
  fmt::print(stderr, "headroom: error: {}\n", with_options(error.what()));
  std::string_view label = "  hint: ";
  std::istringstream hint(with_options(error.hint()));
  for (std::string line; std::getline(hint, line);) {
    if (!line.empty()) fmt::print(stderr, "{}{}\n", std::exchange(label, "        "), line);
  }
  return exit_status(error.code());
}

void add_commands(Command root, int& status) {
  add_analyze(root);
  add_explain(root);
  add_diff(root);
  add_measure(root);
  add_compare(root, status);
  add_complexity(root);
  add_inspect(root, status);
  add_fit(root, status);
  add_plan(root, status);
  add_sweep(root);
  add_calibrate(root);
  add_machines(root);
  add_models(root);
  add_presets(root);
  add_completion(root);
  root.set_footer(
      "Examples:\n"
      "  headroom analyze bert-base\n"
      "  headroom explain gpt2 --what params\n"
      "  headroom compare bert-base\n"
      "  headroom diff llama-2-7b llama-3-8b --dtype bf16\n"
      "\n"
      "Exit status: 0 success, 1 a verdict failed, 2 usage or bad input, 3 out of memory or a "
      "file\n"
      "cannot be written, 4 a defect of headroom.");
}

int run_headroom(const std::vector<std::string>& arguments) {
  Application application(
      "headroom", "Count what a transformer costs: parameters, FLOPs, memory, KV-cache, time.",
      std::string("headroom ") + kVersion);
  int status = 0;
  add_commands(application.root(), status);
  application.run(arguments);
  return status;
}

}  // namespace
}  // namespace headroom::cli

int main(int argc, char** argv) {
  using headroom::Error;
  using headroom::ErrorCode;
  try {
    return headroom::cli::run_headroom({argv + 1, argv + argc});
  } catch (const headroom::IllegalPlan& error) {
    return headroom::cli::print_error(headroom::cli::with_options(error));
  } catch (const Error& error) {
    return headroom::cli::print_error(error);
  } catch (const std::bad_alloc&) {
    return headroom::cli::print_error({ErrorCode::missing_resource, "out of memory"});
  } catch (const std::exception& error) {
    return headroom::cli::print_error(
        {ErrorCode::internal, error.what(), {}, "this is a defect of headroom: please report it"});
  }
}
