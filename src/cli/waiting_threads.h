// Number of OpenMP's threads, and how they wait for each other.
#pragma once

namespace headroom::cli {

/// Lets `prepare_threads` restart this program with these arguments.
void allow_restart(char** arguments);

/// Makes one thread per usable processor the default (measured::use_usable_processors), then
/// restarts the program with OMP_WAIT_POLICY=passive if other programs leave fewer idle processors
/// than `threads` (0: one for each processor), unless the environment says how threads wait. To be
/// called before anything is read or written: OpenMP reads the policy as it loads.
///
/// By default a thread spins for about 3 ms at every barrier (gcc/libgomp/env.c), which is fastest
/// while each thread has a processor. Otherwise it keeps the processor that the thread it waits for
/// needs. Returns without effect where a restart is not allowed or not possible.
void prepare_threads(int threads);

}  // namespace headroom::cli
