// A run of a plan over several processes, as a command sees it: agreement before the run, and one
// report after it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "command_line.h"
#include "headroom/measurement.h"
#include "headroom/parallel_plan.h"
#include "joined_processes.h"
#include "measure.h"
#include "planned_ranks.h"
#include "session.h"

namespace headroom::cli {

/// Adds --tp, --pp, --dp, --ep, --etp, --sp and --micro-batch to a command that runs models.
void add_rank_options(Command command, ParallelPlan& plan, measured::MeasureOptions& run);

/// Throws IllegalPlan or Error{invalid_input} if the processes of `plan` cannot run the model.
void require_plan_runs(const ParallelPlan& plan, const measured::MeasureOptions& run,
                       const ModelSpec& spec, const Workload& workload);

/// "tp 2 · pp 2 · micro-batch 1"
[[nodiscard]] std::string describe(const ParallelPlan& plan, const measured::MeasureOptions& run);

/// Facts that must be equal on all ranks, each with the words for it.
struct RankIdentity {
  std::string model;    ///< paths and shapes of its weights
  std::string weights;  ///< files and a sample of their contents, or the seed
  std::string command;  ///< workload and options
};

/// A text that is equal for equal files: names, sizes, and blocks at 64 places of each.
[[nodiscard]] std::string sample_of(const std::filesystem::path& files);

class RankRun : public JoinedProcesses {
 public:
  /// Joins the processes of the run. Throws Error.
  RankRun(const ParallelPlan& plan, const measured::MeasureOptions& run);

  [[nodiscard]] const measured::RankContext& context() const { return rank_->context(); }
  /// Throws Error{invalid_input} naming a rank whose identity differs from that of rank 0.
  void require_equal(const RankIdentity& identity);
  // Gather on rank 0, which writes the report. Others get nothing new.
  /// Completes the measurement of rank 0 with those of all ranks.
  void gather(Measurement& measurement);
  /// The output tensors of all stages, each once, with the sequences of all replicas.
  [[nodiscard]] std::vector<measured::NamedTensor> gather(
      std::vector<measured::NamedTensor> tensors);
  /// Tokens of the sequences of all replicas.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> gather(
      const std::vector<std::vector<std::int64_t>>& ids);

 private:
  std::string plan_;
  std::unique_ptr<distributed::PlannedRank> rank_;
};

/// Throws Error{invalid_input} if a launcher started several processes for a plan of one, or the
/// plan spreads experts or sequences, or has micro-batches.
void require_one_process(const ParallelPlan& plan, const measured::MeasureOptions& run);

}  // namespace headroom::cli
