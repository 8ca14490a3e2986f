#include <cstdlib>
#include <string_view>

#include "number_text.h"
#include "processes.h"

namespace headroom::distributed {

std::int64_t launched_processes() noexcept {
  // mpirun of Open MPI; mpiexec of MPICH, and srun with PMI; srun with PMIx.
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    std::string_view text(value);
    const std::optional<std::int64_t> count = detail::take_integer(text);
    if (count && *count > 0) return *count;
  }
  return 1;
}

}  // namespace headroom::distributed
