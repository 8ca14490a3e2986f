#!/usr/bin/env bash
# check_ranks.sh PROCESSES COMMAND...: starts the command on this machine, with more processes than
# processors if need be. Prints SKIPPED where mpirun is absent.
set -euo pipefail
command -v mpirun >/dev/null || { echo 'SKIPPED: no mpirun; install openmpi-bin'; exit 0; }
options=(--oversubscribe --bind-to none)
((EUID != 0)) || options+=(--allow-run-as-root)
exec mpirun "${options[@]}" -n "$1" "${@:2}"
