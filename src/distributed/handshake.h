// The first message between the processes of a run.
#pragma once

#include <string>

#include "communicator.h"

namespace headroom::distributed {

/// Throws AgreedError{invalid_input} on all ranks, naming one, if a rank runs another `build` than
/// rank 0. Builds may differ in everything that they exchange later, so that this comes first, and
/// its message never changes: the text alone, by Coordinator::exchange.
void require_one_build(measured::Coordinator& world, const std::string& build);

}  // namespace headroom::distributed
