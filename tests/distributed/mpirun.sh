# Sourced: leaves the test, as skipped, where mpirun is absent; else `mpirun_options` start more
# processes than processors if need be, also as root.
command -v mpirun >/dev/null || { echo 'SKIPPED: no mpirun; install openmpi-bin'; exit 0; }
mpirun_options=(--oversubscribe --bind-to none -q)
((EUID != 0)) || mpirun_options+=(--allow-run-as-root)
