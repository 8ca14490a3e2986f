// Limits of the system on threads. Internal to src/measured and the program.
#pragma once

namespace headroom::measured {

/// Throws Error{missing_resource} if the system does not start `count` threads, this one included:
/// beyond `ulimit -u`, a container's limit, or without memory for their stacks. OpenMP would end
/// the program there, without an error and with its temporary files.
void require_threads(int count);

}  // namespace headroom::measured
