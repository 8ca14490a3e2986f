#!/usr/bin/env bash
# Runs each model under valgrind: a prefill with eager and with fused attention, a decode step, and
# a generation where the model has one.
#
# usage: valgrind.sh HEADROOM FOLDER...   (folders of model folders)
#
# HEADROOM must be built with HEADROOM_NATIVE=OFF: valgrind (Debian's package) knows no AVX-512.
#
# Prints each run that fails, and the totals. Exit status: 0 if no run read or wrote memory wrongly.
set -uo pipefail
headroom=$1
runs=0 refused=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

check() {  # check ARGUMENTS...: headroom's own refusals are no failures
  OMP_WAIT_POLICY=passive valgrind -q --error-exitcode=99 --log-file="$log" \
    "$headroom" measure "$@" --runs 1 --threads 2 --quiet -o /dev/null >/dev/null 2>&1
  case $? in
    0) runs=$((runs + 1)) ;;
    2 | 3) refused=$((refused + 1)) ;;
    *) failed=$((failed + 1)); printf 'FAILED: measure %s\n' "$*"; cat "$log" ;;
  esac
}

for folder in "${@:2}"; do
  for model in "$folder"/*/; do
    [[ -f $model/config.json ]] || continue
    for backend in eigen onednn; do
      check "$model" --backend "$backend" --attention eager
      check "$model" --backend "$backend" --attention fused
    done
    check "$model" --phase decode --past 3
    check "$model" --phase generate --seq 8 --new-tokens 2  # tiny models have few positions
  done
done
printf '%d runs without an error, %d refused, %d failed\n' "$runs" "$refused" "$failed"
((failed == 0 && runs > 0))
