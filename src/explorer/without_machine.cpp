// A browser's page knows no machine of its own: it runs no models and stores no profiles.
#include "counted_run.h"
#include "headroom/error.h"
#include "own_machine.h"
#include "plan_command.h"
#include "processes.h"
#include "sweep_runs.h"

namespace headroom::cli {

measured::Backend default_backend() noexcept { return measured::Backend::eigen; }

std::optional<MachineProfile> stored_profile(measured::Backend /*backend*/) { return std::nullopt; }

std::optional<MachineProfile> valid_profile(measured::Backend /*backend*/) { return std::nullopt; }

MachineProfile own_machine(measured::Backend /*backend*/) {
  throw Error(ErrorCode::invalid_input, "the page knows no machine of its own", {},
              "choose a machine of the catalogue");
}

std::string mismatch(const MachineProfile& /*profile*/, measured::Backend /*backend*/) {
  return {};
}

Integer own_memory() { return 0; }

Measurement run_once(const Model& /*model*/, const Workload& /*workload*/) {
  throw Error(ErrorCode::missing_resource, "the page runs no models", {},
              "install headroom to measure one");
}

void sweep_on_ranks(const SweepCommand& command) { sweep_on_one_process(command); }

void plan_on_ranks(PlanCommand& command, int& status) { plan_on_one_process(command, status); }

}  // namespace headroom::cli

namespace headroom::distributed {

std::int64_t launched_processes() noexcept { return 1; }

}  // namespace headroom::distributed
