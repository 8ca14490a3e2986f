// Processes of which the last claims another version: all must get the same error. Started by
// mpirun (tests/distributed/builds.sh).
#include <fmt/format.h>

#include "handshake.h"
#include "processes.h"
#include "rank_context.h"

int main() {
  using namespace headroom;
  const auto processes = distributed::Processes::join();
  measured::Coordinator& world = processes->world();
  const bool is_last = world.rank() + 1 == world.size();
  try {
    distributed::require_one_build(world, is_last ? "0.9.0 an-older-commit" : "1.0.0 a-commit");
  } catch (const measured::AgreedError& error) {
    if (world.rank() == 0) fmt::print("{}: {}\n", error.where(), error.message());
    return exit_status(error.code());
  }
  return 0;
}
