// A parallel plan laid over the processes of a run.
#pragma once

#include <memory>

#include "headroom/model_spec.h"
#include "headroom/parallel_plan.h"
#include "headroom/workload.h"
#include "processes.h"
#include "rank_context.h"

namespace headroom::distributed {

/// Throws IllegalPlan if the plan breaks a rule for a forward pass of `workload`;
/// Error{invalid_input} for a part of a plan that headroom counts and does not run.
void require_runs(const ParallelPlan& plan, const ModelSpec& spec, const Workload& workload);

/// Throws Error{invalid_input} for micro-batches of this size without a pipeline that they flow
/// through, or that do not divide the sequences of a replica.
void require_micro_batches_run(std::int64_t micro_batch, const ParallelPlan& plan,
                               const Workload& workload);

/// The rank of this process: the graph that shard_stage makes for it, and its groups. Ranks are
/// numbered as in ParallelPlan: tensor first, then data, then pipeline.
class PlannedRank {
 public:
  /// Throws Error{invalid_input} if there are more or fewer processes than the plan has devices.
  /// `processes` must outlive the rank.
  PlannedRank(Processes& processes, const ParallelPlan& plan);

  [[nodiscard]] const measured::RankContext& context() const noexcept { return context_; }

 private:
  std::unique_ptr<measured::Communicator> tensor_;
  std::unique_ptr<measured::Communicator> pipeline_;
  std::unique_ptr<measured::Communicator> experts_;
  std::unique_ptr<measured::Coordinator> replica_;
  measured::RankContext context_;
};

}  // namespace headroom::distributed
