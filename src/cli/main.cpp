// Parses the command line, runs one command, and turns every error into a message and an exit
// status.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.h"
#include "headroom/error.h"
#include "interruption.h"
#include "plan_violations.h"
#include "setting_options.h"
#include "standard_streams.h"
#include "utf8.h"
#include "version.h"

namespace headroom::cli {
namespace {

int print_error(const Error& error) {
  write_standard_error(
      fmt::format("headroom: error: {}\n", detail::printable(with_options(error.what()))));
  std::string_view label = "  hint: ";
  std::istringstream hint(with_options(error.hint()));
  for (std::string line; std::getline(hint, line);) {
    if (line.empty()) continue;
    write_standard_error(
        fmt::format("{}{}\n", std::exchange(label, "        "), detail::printable(line)));
  }
  return exit_status(error.code());
}

void add_commands(Command root, int& status) {
  add_analyze(root);
  add_explain(root, status);
  add_diff(root);
  add_measure(root);
  add_compare(root, status);
  add_complexity(root);
  add_inspect(root, status);
  add_fit(root, status);
  add_plan(root, status);
  add_serve(root, status);
  add_sweep(root);
  add_calibrate(root, status);
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
      "cannot be read or written, 4 a defect of headroom; 128 + the signal that ended a run.");
}

int run_headroom(const std::vector<std::string>& arguments) {
  Application application(
      "headroom", "Count what a transformer costs: parameters, FLOPs, memory, KV-cache, time.",
      std::string("headroom ") + kVersion);
  int status = 0;
  add_commands(application.root(), status);
  application.run(arguments);
  const int signal = detail::interruption();
  return signal == 0 ? status : detail::exit_status_of_signal(signal);
}

/// Destructors of JSON allocate, and must not throw: without memory they end the program.
[[noreturn]] void end_without_memory() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    (void)std::fputs("headroom: error: out of memory\n", stderr);
    std::_Exit(exit_status(ErrorCode::missing_resource));
  } catch (...) {  // NOLINT(bugprone-empty-catch): any other error is a defect, which aborts
  }
  std::abort();
}

}  // namespace
}  // namespace headroom::cli

int main(int argc, char** argv) {
  using headroom::Error;
  using headroom::ErrorCode;
  std::set_terminate(headroom::cli::end_without_memory);
  headroom::cli::prepare_standard_streams();
  headroom::detail::handle_end_signals();
  try {
    return headroom::cli::run_headroom({argv + 1, argv + argc});
  } catch (const headroom::IllegalPlan& error) {
    return headroom::cli::print_error(headroom::cli::with_options(error));
  } catch (const Error& error) {
    return headroom::cli::print_error(error);
  } catch (const headroom::detail::Interrupted&) {
    headroom::cli::write_standard_error("headroom: interrupted before there was a result\n");
    return headroom::detail::exit_status_of_signal(headroom::detail::interruption());
  } catch (const std::filesystem::filesystem_error& error) {
    return headroom::cli::print_error(
        {ErrorCode::missing_resource, error.code().message(), error.path1().string(),
         "check the path, its permissions, and that the working directory exists"});
  } catch (const std::bad_alloc&) {
    return headroom::cli::print_error({ErrorCode::missing_resource, "out of memory"});
  } catch (const std::exception& error) {
    return headroom::cli::print_error(
        {ErrorCode::internal, error.what(), {}, "this is a defect of headroom: please report it"});
  }
}
