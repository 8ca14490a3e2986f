#include "joined_processes.h"

#include <fmt/format.h>

#include "commit.h"
#include "handshake.h"
#include "headroom/error.h"
#include "interruption.h"
#include "program.h"
#include "rank_context.h"
#include "version.h"

namespace headroom::cli {

JoinedProcesses::JoinedProcesses() : processes_(distributed::Processes::join()) {}

void JoinedProcesses::run(const std::function<void()>& work) {
  try {
    if (!is_one_build_) {
      distributed::require_one_build(processes_->world(), fmt::format("{} {}", kVersion, kCommit));
    }
    is_one_build_ = true;
    work();
  } catch (const measured::AgreedError& error) {
    if (reports()) throw;
    throw EndQuietly{exit_status(error.code())};
  } catch (const EndQuietly&) {
    throw;
  } catch (const detail::Interrupted&) {
    processes_->abort(detail::exit_status_of_signal(detail::interruption()));
  } catch (...) {
    const Error error = current_error();
    const std::string rank =
        fmt::format("rank {} of {}", processes_->world().rank(), processes_->world().size());
    processes_->abort(
        print_error({error.code(), error.message(),
                     error.where().empty() ? rank : rank + ": " + error.where(), error.hint()}));
  }
}

void JoinedProcesses::together(const std::function<void()>& step) {
  measured::run_together(processes_->world(), [&] {
    try {
      step();
    } catch (...) {
      throw current_error();
    }
  });
}

}  // namespace headroom::cli
