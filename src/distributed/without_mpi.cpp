#include "headroom/error.h"
#include "processes.h"

namespace headroom::distributed {

std::unique_ptr<Processes> Processes::join() {
  throw Error(ErrorCode::missing_resource, "this build of headroom has no MPI", {},
              "install it and build again; on Debian: apt-get install libopenmpi-dev openmpi-bin");
}

}  // namespace headroom::distributed
