#include <charconv>
#include <cstdlib>
#include <string_view>

#include "processes.h"

namespace headroom::distributed {

std::int64_t launched_processes() noexcept {
  // mpirun of Open MPI; mpiexec of MPICH, and srun with PMI; srun with PMIx.
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    const std::string_view text(value);
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error == std::errc() && count > 0) return count;
  }
  return 1;
}

}  // namespace headroom::distributed
