// Processes: those that mpirun started together. Hides the MPI library, without which a build only
// reports that it has none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator.h"
#include "headroom/measurement.h"

namespace headroom::distributed {

class Processes {
 public:
  /// Joins the processes that were started with this one; once in a program. Throws
  /// Error{missing_resource} if this build has no MPI.
  [[nodiscard]] static std::unique_ptr<Processes> join();

  Processes() = default;
  virtual ~Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  /// All processes.
  [[nodiscard]] virtual measured::Coordinator& world() = 0;
  /// The processes that call this with the same `color`, in their order. Its collectives count as
  /// traffic of `group`. Every process must call it.
  [[nodiscard]] virtual std::unique_ptr<measured::Communicator> split(RankGroup group,
                                                                      std::int64_t color) = 0;
  /// Likewise to coordinate, which is no traffic of a plan.
  [[nodiscard]] virtual std::unique_ptr<measured::Coordinator> subset(std::int64_t color) = 0;
  /// Calls and bytes of this process so far, counted in MPI's profiling layer.
  [[nodiscard]] virtual std::vector<WireTraffic> traffic() const = 0;
  [[nodiscard]] virtual std::string host() const = 0;
  /// Name and version of the MPI library.
  [[nodiscard]] virtual std::string library() const = 0;
  /// Ends all processes with this exit status.
  [[noreturn]] virtual void abort(int status) = 0;
};

/// Processes that the launcher of this one states in its environment: Open MPI, MPICH and Slurm.
/// 1 without a launcher.
[[nodiscard]] std::int64_t launched_processes() noexcept;

}  // namespace headroom::distributed
