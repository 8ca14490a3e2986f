// A run over several processes, as a command sees it: agreement before the run, one report after
// it, one error message if it fails.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "command_line.h"
#include "headroom/measurement.h"
#include "headroom/parallel_plan.h"
#include "planned_ranks.h"
#include "session.h"

namespace headroom::cli {

/// Adds --tp, --pp and --sp to a command that runs models.
void add_rank_options(Command command, ParallelPlan& plan);

/// Ends a process whose error another rank reports.
struct EndQuietly {
  int status = 0;
};

/// Facts that must be equal on all ranks, each with the words for it.
struct RankIdentity {
  std::string build;    ///< version and commit
  std::string model;    ///< paths and shapes of its weights
  std::string weights;  ///< files and a sample of their contents, or the seed
  std::string command;  ///< workload and options
};

/// A text that is equal for equal files: names, sizes, and blocks at 64 places of each.
[[nodiscard]] std::string sample_of(const std::filesystem::path& files);

class RankRun {
 public:
  /// Joins the processes of the run. Throws Error.
  explicit RankRun(const ParallelPlan& plan);

  [[nodiscard]] const measured::RankContext& context() const { return rank_->context(); }
  /// True on the rank that writes the report.
  [[nodiscard]] bool reports() { return processes_->world().rank() == 0; }

  /// Runs `work`, which every rank must. Errors that all ranks agreed on are thrown on rank 0, and
  /// EndQuietly on the others. Any other error ends all processes after its message.
  void run(const std::function<void()>& work);
  /// Runs `step` on all ranks; throws if it fails on any.
  void together(const std::function<void()>& step);
  /// Throws Error{invalid_input} naming a rank whose identity differs from that of rank 0.
  void require_equal(const RankIdentity& identity);
  /// Completes the measurement of rank 0 with those of all ranks.
  void gather(Measurement& measurement);
  /// The output tensors of all stages, each once.
  [[nodiscard]] std::vector<measured::NamedTensor> gather(
      std::vector<measured::NamedTensor> tensors);

 private:
  std::string plan_;
  std::unique_ptr<distributed::Processes> processes_;
  std::unique_ptr<distributed::PlannedRank> rank_;
};

/// Throws Error{invalid_input} if a launcher started several processes for a run on one.
void refuse_several_processes();

}  // namespace headroom::cli
