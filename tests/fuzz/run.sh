#!/usr/bin/env bash
# Runs every fuzzer for some seconds, on a copy of its corpus.
#
# usage: run.sh BUILD_FOLDER SECONDS [NAME…]
#
# Exit status: 0 if none found a failure. A failing input is kept as BUILD_FOLDER/NAME-crash-….
set -euo pipefail
build=$1 seconds=$2
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
names=("${@:3}")
((${#names[@]})) || for file in "$here"/fuzz_*.cpp; do
  name=${file##*/fuzz_}
  names+=("${name%.cpp}")
done
status=0
for name in "${names[@]}"; do
  work=$build/corpus/$name
  rm -rf "$work" && mkdir -p "$work" && cp "$here/corpus/$name"/* "$work"
  dictionary=()
  [[ -f $here/$name.dict ]] && dictionary=(-dict="$here/$name.dict")
  printf '%s\n' "$name"
  "$build/headroom_fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=16384 "${dictionary[@]}" -artifact_prefix="$build/$name-" -print_final_stats=1 \
    -verbosity=0 "$work" || status=1
done
exit "$status"
