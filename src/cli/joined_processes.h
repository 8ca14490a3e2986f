// Several processes that one command runs on: one report and, if it fails, one error message.
#pragma once

#include <functional>
#include <memory>

#include "processes.h"

namespace headroom::cli {

/// Ends a process whose error another rank reports.
struct EndQuietly {
  int status = 0;
};

class JoinedProcesses {
 public:
  /// Joins the processes that were started with this one. Throws Error.
  JoinedProcesses();

  [[nodiscard]] distributed::Processes& processes() { return *processes_; }
  /// True on the rank that writes the report.
  [[nodiscard]] bool reports() { return processes_->world().rank() == 0; }

  /// Runs `work`, which every rank must, once all are known to be one build. Errors that all ranks
  /// agreed on are thrown on rank 0, and EndQuietly on the others. Any other error ends all
  /// processes after its message.
  void run(const std::function<void()>& work);
  /// Runs `step` on all ranks; throws if it fails on any.
  void together(const std::function<void()>& step);

 private:
  std::unique_ptr<distributed::Processes> processes_;
  bool is_one_build_ = false;  ///< known of all processes
};

}  // namespace headroom::cli
