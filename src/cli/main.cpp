// Runs the command line, and turns every error into a message and an exit status.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/error.h"
#include "interruption.h"
#include "output.h"
#include "program.h"
#include "setting_options.h"
#include "standard_streams.h"
#include "user_settings.h"
#include "utf8.h"

namespace headroom::cli {
namespace {

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

int run_to_the_end(const std::vector<std::string>& arguments) {
  const UserSettings settings = read_user_settings();
  for (const std::string& warning : settings.warnings) {
    write_labelled("headroom: warning: ", detail::printable(warning));
  }
  const int status = run_program(arguments, settings);
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
  std::set_terminate(headroom::cli::end_without_memory);
  headroom::cli::prepare_standard_streams();
  headroom::detail::handle_end_signals();
  try {
    return headroom::cli::run_to_the_end({argv + 1, argv + argc});
  } catch (const headroom::detail::Interrupted&) {
    headroom::cli::write_standard_error("headroom: interrupted before there was a result\n");
    return headroom::detail::exit_status_of_signal(headroom::detail::interruption());
  } catch (...) {
    return headroom::cli::print_error(headroom::cli::current_error());
  }
}
