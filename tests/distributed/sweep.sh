#!/usr/bin/env bash
# sweep.sh HEADROOM: rows of a sweep over several processes are those of one, byte by byte, on
# standard output and in a file; an error ends all with one message.
set -euo pipefail
headroom=$1
source "$(dirname "$0")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# equal PROCESSES ARGS…: the rows of the sweep.
equal() {
  "$headroom" sweep "${@:2}" -q >"$folder/one"
  mpirun "${mpirun_options[@]}" -n "$1" "$headroom" sweep "${@:2}" -q >"$folder/all" </dev/null
  cmp "$folder/one" "$folder/all"
  (($(wc -l <"$folder/one") > 1))
  echo "equal: $*"
}

equal 2 gpt2 --batch 1..16 --seq 1..40
equal 3 gpt2 --batch 1..7 --seq 5,3,9 --past 0..5 --format jsonl
equal 4 gpt2 --batch 1,2 --dtype float32,bfloat16 --weights bf16,q8_0 --machine a100-80gb
equal 4 llama-3-8b --phase train --recompute none,selective,full --seq 128..1024:+128
equal 3 qwen3-vl-2b --images 0..3 --image-size 224x224,448x448 --seq 2048..2050 --batch 1,2
equal 2 t5-small --enc-seq 1..9 --batch 1..3
equal 4 gpt2  # fewer rows than processes

mpirun "${mpirun_options[@]}" -n 2 "$headroom" sweep gpt2 --batch 1..64 --seq 1..64 -q \
  -o "$folder/rows.csv" </dev/null
"$headroom" sweep gpt2 --batch 1..64 --seq 1..64 -q >"$folder/one"
cmp "$folder/one" "$folder/rows.csv"

# refused ARGS…: one message, exit status 2.
refused() {
  local status=0
  mpirun "${mpirun_options[@]}" -n 2 "$headroom" sweep "$@" >"$folder/out" 2>"$folder/err" </dev/null ||
    status=$?
  if ((status != 2)) || (($(grep -c '^headroom: error' "$folder/err") != 1)); then
    echo "FAILED: sweep $*: status $status"
    cat "$folder/err"
    exit 1
  fi
}
refused gpt3-of-nobody
refused gpt2 --phase train --machine a100-80gb
# The last rows of the grid overflow, on the second process.
refused gpt2 --seq 1,2000000000000000000 --batch 1,3000000000000000000
