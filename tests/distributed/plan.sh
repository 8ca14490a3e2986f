#!/usr/bin/env bash
# plan.sh HEADROOM: a search over several processes writes the report of one, byte by byte, with its
# exit status; an error ends all with one message.
set -euo pipefail
headroom=$1
source "$(dirname "$0")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# equal PROCESSES STATUS ARGS…
equal() {
  local one=0 all=0
  "$headroom" plan "${@:3}" >"$folder/one" 2>"$folder/one.err" || one=$?
  mpirun "${mpirun_options[@]}" -n "$1" "$headroom" plan "${@:3}" >"$folder/all" \
    2>"$folder/all.err" </dev/null || all=$?
  cmp "$folder/one" "$folder/all"
  cmp <(grep '^note' "$folder/one.err") <(grep '^note' "$folder/all.err") || exit 1
  ((one == $2 && all == $2)) || { echo "FAILED: plan ${*:3}: status $one and $all"; exit 1; }
  (($(wc -l <"$folder/one") > 5))
  echo "equal: $*"
}

equal 2 0 llama-3-8b --machine a100-80gb --count 8 --train --batch 64 --seq 4096
equal 3 0 llama-3-8b --machine a100-80gb --count 16 --train --batch 64 --seq 4096 --front
equal 4 0 mixtral-8x7b --machine h100-80gb --count 8 --serve --batch 16 --json
equal 3 0 gpt2 --machine a100-80gb --count 1 --serve --batch 1  # fewer plans than processes
equal 4 1 llama-3-70b --machine a100-80gb --count 2 --train --batch 8 --seq 4096  # none fits

# refused ARGS…: one message, exit status 2.
refused() {
  local status=0
  mpirun "${mpirun_options[@]}" -n 2 "$headroom" plan "$@" >"$folder/out" 2>"$folder/err" </dev/null ||
    status=$?
  if ((status != 2)) || (($(grep -c '^headroom: error' "$folder/err") != 1)); then
    echo "FAILED: plan $*: status $status"
    cat "$folder/err"
    exit 1
  fi
}
refused gpt3-of-nobody --machine a100-80gb --count 2
refused llama-3-8b --machine a100-80gb --count 8 --train --batch 1 --dp 8
