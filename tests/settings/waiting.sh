#!/usr/bin/env bash
# Threads sleep while they wait on a busy machine, unless the user chooses otherwise. libgomp prints
# its policy as it loads.
#
# usage: waiting.sh HEADROOM
set -u
headroom=$1
export OMP_DISPLAY_ENV=verbose
unset GOMP_SPINCOUNT OMP_WAIT_POLICY KMP_BLOCKTIME

spins() { # spins of the process that ran: the last report
  "$@" 2>&1 | sed -n "s/.*GOMP_SPINCOUNT = '\([0-9]*\)'.*/\1/p" | tail -n 1
}

[ -n "$(spins "$headroom" --version)" ] || { echo 'SKIPPED: not libgomp'; exit 77; }
busy=()
for _ in $(seq "$(nproc --all)"); do
  while :; do :; done &
  busy+=($!)
done
trap 'kill "${busy[@]}"' EXIT
status=0
expect() { # NAME EXPECTED ACTUAL
  [ "$2" = "$3" ] && return
  echo "$1: expected $2 spins, got $3"
  status=1
}
measure=("$headroom" measure bert-tiny --runs 1)
expect 'beside busy programs' 0 "$(spins "${measure[@]}")"
expect 'a count of the user' 77 "$(GOMP_SPINCOUNT=77 spins "${measure[@]}")"
expect 'a policy of the user' 300000 "$(KMP_BLOCKTIME=1 spins "${measure[@]}")"
exit "$status"
