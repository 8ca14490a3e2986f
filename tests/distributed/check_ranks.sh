#!/usr/bin/env bash
# check_ranks.sh PROCESSES COMMAND...: starts the command on this machine.
set -euo pipefail
source "$(dirname "$0")/mpirun.sh"
exec mpirun "${mpirun_options[@]}" -n "$1" "${@:2}"
