// Runs the command line, and turns every error into a message and an exit status.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "headroom/error.h"
#include "interruption.h"
#include "output.h"
#include "program.h"
#include "rank_runs.h"
#include "standard_streams.h"
#include "user_settings.h"
#include "utf8.h"
#include "waiting_threads.h"

namespace headroom::cli {
namespace {

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
  headroom::cli::allow_restart(argv);
  try {
    return headroom::cli::run_to_the_end({argv + 1, argv + argc});
  } catch (const headroom::detail::Interrupted&) {
    headroom::cli::write_standard_error("headroom: interrupted before there was a result\n");
    return headroom::detail::exit_status_of_signal(headroom::detail::interruption());
  } catch (const headroom::cli::EndQuietly& end) {
    return end.status;
  } catch (...) {
    (void)headroom::cli::print_error(headroom::cli::current_error());
    return headroom::cli::current_status();
  }
}
