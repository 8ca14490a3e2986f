// The number of processes that mpirun or srun started, by the variables that each sets.
#include <doctest/doctest.h>

#include "processes.h"
#include "support/scratch.h"

using headroom::distributed::launched_processes;
using headroom::test::ScratchVariable;

TEST_CASE("each launcher's variable says how many processes it started") {
  CHECK(launched_processes() == 1);
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const ScratchVariable variable(name, "4");
    CHECK(launched_processes() == 4);
  }
  CHECK(launched_processes() == 1);
}

TEST_CASE("a variable without a number above 0 counts as unset") {
  const ScratchVariable pmi("PMI_SIZE", "3");
  for (const char* const text : {"", "many", "0", "-2"}) {
    const ScratchVariable open_mpi("OMPI_COMM_WORLD_SIZE", text);
    CHECK(launched_processes() == 3);
  }
}
