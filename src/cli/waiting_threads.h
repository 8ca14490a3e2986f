// How OpenMP's threads wait for each other.
#pragma once

namespace headroom::cli {

/// Lets `sleep_on_busy_machine` restart this program with these arguments.
void allow_restart(char** arguments);

/// Restarts the program with OMP_WAIT_POLICY=passive if other programs leave fewer idle processors
/// than `threads` (0: one for each processor), unless the environment says how threads wait. To be
/// called before anything is read or written: OpenMP reads the policy as it loads.
///
/// By default a thread spins for about 3 ms at every barrier (gcc/libgomp/env.c), which is fastest
/// while each thread has a processor. Otherwise it keeps the processor that the thread it waits for
/// needs. Returns without effect where a restart is not allowed or not possible.
void sleep_on_busy_machine(int threads);

}  // namespace headroom::cli
