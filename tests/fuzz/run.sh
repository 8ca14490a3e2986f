#!/usr/bin/env bash
# Runs every fuzzer for some seconds, on a copy of its corpus; four times as many at once as there
# are processors.
#
# usage: run.sh BUILD_FOLDER SECONDS [NAME…]
#
# Exit status: 0 if none found a failure. A failing input is kept as BUILD_FOLDER/NAME-crash-….
# Unless ASAN_OPTIONS is set, allocations keep no stacks, for speed; try a failing input again for them.
set -euo pipefail
export ASAN_OPTIONS=${ASAN_OPTIONS-malloc_context_size=0:quarantine_size_mb=16}
build=$(readlink -f "$1") seconds=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
names=("${@:3}")
((${#names[@]})) || for file in "$here"/fuzz_*.cpp; do
  name=${file##*/fuzz_}
  names+=("${name%.cpp}")
done

# show_failure NAME: the log, and the input in base64: a machine that only keeps its output must do to
# try it again (base64 -d >input; headroom_fuzz_NAME input).
show_failure() {
  local input
  cat "$build/$1.log"
  for input in "$build/$1"-{crash,leak,oom,timeout}-*; do
    [[ -f $input ]] || continue
    printf '%s: %s\n%s\n' "$1" "${input##*/}" "$(base64 -w 0 "$input")"
  done
  grep -aE '^(broken: |SUMMARY: |.*runtime error: )' "$build/$1.log" | sed "s/^/$1: /" || true
}

fuzz() {  # fuzz NAME: its output goes to BUILD_FOLDER/NAME.log, and on failure to the screen
  local name=$1 work=$build/corpus/$1 dictionary=()
  rm -rf "$work" && mkdir -p "$work" && cp "$here/corpus/$name"/* "$work"
  [[ -f $here/$name.dict ]] && dictionary=(-dict="$here/$name.dict")
  OMP_NUM_THREADS=1 "$build/headroom_fuzz_$name" -seed=1 -max_total_time="$seconds" -timeout=60 \
    -rss_limit_mb=2048 -max_len=16384 "${dictionary[@]}" -artifact_prefix="$build/$name-" \
    -print_final_stats=1 -verbosity=0 "$work" >"$build/$name.log" 2>&1 || { show_failure "$name"; return 1; }
  printf '%s: %s\n' "$name" "$(grep -oE 'number_of_executed_units: *[0-9]+' "$build/$name.log")"
}

status=0 running=0
for name in "${names[@]}"; do
  if ((running == 4 * $(nproc))); then
    wait -n || status=1
    running=$((running - 1))
  fi
  fuzz "$name" &
  running=$((running + 1))
done
while ((running)); do
  wait -n || status=1
  running=$((running - 1))
done
exit "$status"
