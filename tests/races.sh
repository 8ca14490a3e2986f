#!/usr/bin/env bash
# Runs the tests and some commands of several threads under clang's thread sanitizer.
#
# usage: races.sh
#
# Needs clang and its libomp (Debian's clang and libomp-dev), whose Archer tells the sanitizer of
# OpenMP's barriers. Builds in build/threads. A program with a race comes first, which the sanitizer
# has to find. oneDNN is not compiled for it: accesses from its code are not seen.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
build=$root/build/threads
flags='-fsanitize=thread'
archer=$(find /usr/lib/llvm-* -name libarcher.so 2>/dev/null | sort -V | tail -n 1 || true)
[[ -n $archer ]] || { echo 'races.sh: libarcher.so is missing; install libomp-dev' >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive OMP_TOOL_LIBRARIES=$archer HOME=$work
export TSAN_OPTIONS='ignore_noninstrumented_modules=1 exitcode=66'
failed=0

# check NAME COMMAND...: the exit status of a program with a race is 66.
check() {
  local name=$1 status=0
  shift
  "$@" >"$work/out" 2>"$work/err" || status=$?
  local races
  races=$(cat "$work/out" "$work/err" | grep -c 'WARNING: ThreadSanitizer' || true)
  printf '%-60s exit status %d, %d races\n' "$name" "$status" "$races"
  [[ $status -eq 0 && $races -eq 0 ]] && return
  failed=1
  grep -h -A 30 'WARNING: ThreadSanitizer' "$work/out" "$work/err" | head -n 60 || true
}

cat >"$work/race.cpp" <<'END'
int main() {
  int sum = 0;
#pragma omp parallel for
  for (int i = 0; i < 1000; ++i) sum += i;
  return sum == 0;
}
END
clang++ -O1 -g1 -fopenmp $flags "$work/race.cpp" -o "$work/race"
if "$work/race" 2>/dev/null; then
  echo 'races.sh: the sanitizer does not find a race' >&2
  exit 1
fi

cmake --preset dev -S "$root" -B "$build" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1 $flags" -DCMAKE_EXE_LINKER_FLAGS="$flags" \
  -DCMAKE_SHARED_LINKER_FLAGS="$flags" >/dev/null
cmake --build "$build" -- --quiet

for program in "$build"/headroom_*_tests; do
  # The sanitizer takes memory of its own beside what these tests weigh.
  check "$(basename "$program")" "$program" --minimal --source-file-exclude="*/test_load_memory.cpp"
done
headroom() { check "headroom $*" "$build/headroom" "$@"; }
headroom calibrate --quick --threads 1,2
headroom measure bert-tiny --threads 2 --runs 3
headroom measure gpt2 --phase decode --past 40 --threads 2 --runs 1 --weights bfloat16
headroom measure gpt2 --phase generate --seq 8 --new-tokens 4 --threads 2 --runs 1 --weights q4_0
headroom compare bert-tiny --threads 2 --runs 3
headroom plan llama-3-8b --machine h100-80gb --count 64 --search-threads 2
headroom serve llama-3-8b --machine h100-80gb --input 500 --output 100 --rate 5
headroom serve llama-3-8b --machines h100-80gb,l40s,l4 --rate 2 --ttft 1s
headroom fit llama-3-8b
headroom sweep bert-tiny --batch 1..8 -o "$work/sweep.csv"
exit "$failed"
