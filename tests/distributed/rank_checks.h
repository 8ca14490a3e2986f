// Comparisons of a run over several processes with one process, and with its plan's counts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headroom/parallel_plan.h"
#include "headroom/workload.h"
#include "rank_context.h"
#include "session.h"

namespace headroom::rank_checks {

using Problems = std::vector<std::string>;

/// Adds a problem if an output differs by more than sums over ranks may round.
void compare(const measured::NamedTensor& got, const measured::NamedTensor& expected,
             Problems& problems);

/// Adds a problem unless a count equals the plan's.
void require_equal(const char* what, Integer counted, Integer planned, Problems& problems);

/// Calls and bytes of a pass of `graph`, the rank's, from its collective operators.
[[nodiscard]] std::vector<WireTraffic> planned_traffic(const Graph& graph, const Bindings& values);

/// Adds the calls and bytes of `more`, `times` times.
void add_rows(const std::vector<WireTraffic>& more, std::int64_t times,
              std::vector<WireTraffic>& rows);

/// The sum of the values of all ranks, each of which must call it.
[[nodiscard]] Integer sum_over(measured::Coordinator& world, Integer value);

/// Compares the traffic after `before` with the plan's. Bytes that depend on the choice of experts
/// are compared as the sums of all ranks.
void compare_traffic(std::vector<WireTraffic> counted, const std::vector<WireTraffic>& before,
                     std::vector<WireTraffic> planned, const measured::RankContext& rank,
                     Problems& problems);

/// The model of `folder`, without the towers that only count, which a run does not load.
[[nodiscard]] ModelSpec loaded_model(const std::filesystem::path& folder);

/// A pass of this rank by the analytic module: its graph, and all symbols.
struct PlannedPass {
  Graph graph;
  Bindings values;
};

/// The pass of this rank under `plan`. A decode step is never sequence-parallel.
[[nodiscard]] PlannedPass planned_pass(const ModelSpec& spec, const measured::RankContext& rank,
                                       const Workload& workload, ParallelPlan plan);

/// Sequences of a length that 2 and 4 ranks divide.
[[nodiscard]] Workload sharded_workload(const ModelSpec& spec, std::int64_t batch);

/// The folders of models in `folders`.
[[nodiscard]] std::vector<std::filesystem::path> models_in(const std::vector<std::string>& folders);

enum class Outcome { equal, refused, differs };

/// Prints the problems of all ranks on rank 0, or how many outputs are equal.
[[nodiscard]] Outcome outcome_of(const std::string& model, const Problems& problems,
                                 std::size_t compared, measured::Coordinator& world);

}  // namespace headroom::rank_checks
