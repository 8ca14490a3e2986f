#!/usr/bin/env bash
# Measures which lines and branches the tests reach, with clang's source-based coverage.
#
# usage: coverage.sh [CTEST ARGS...]
#
# Needs clang and its llvm-profdata and llvm-cov (Debian's clang and llvm). Builds in
# build/coverage, runs each test program there and CTest's other tests, such as the golden cases and
# the fuzzers' corpora, and prints a table by module; branches that no test takes go to
# build/coverage/missed.txt. CTEST ARGS narrow the other tests: -R '^(golden|fuzz)'.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
build=$root/build/coverage
flags='-fprofile-instr-generate -fcoverage-mapping'

cmake --preset dev -S "$root" -B "$build" -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DCMAKE_CXX_FLAGS_DEBUG="-O0 -g0 $flags" -DCMAKE_EXE_LINKER_FLAGS="$flags" \
  -DCMAKE_SHARED_LINKER_FLAGS="$flags" >/dev/null
cmake --build "$build" -- --quiet

rm -rf "$build/profiles"
# Four files a program, which its runs merge into.
export LLVM_PROFILE_FILE="$build/profiles/%4m.profraw" OMP_WAIT_POLICY=passive
# CTest would start the test programs once a case, and each run merges a profile of all code. Tests
# of several processes have the name of a program, too.
programs=()
for program in "$build"/headroom_*_tests; do
  "$program" --minimal || echo "$program: some cases failed" >&2
  name=$(basename "$program" _tests)
  [[ $name == headroom_ranks ]] || programs+=("${name#headroom_}")
done
ctest --test-dir "$build" -j "$(nproc)" -E "^($(IFS='|' && echo "${programs[*]}")):" "$@" |
  tail -n 20 ||
  echo 'some tests failed' >&2
llvm-profdata merge -o "$build/all.profdata" "$build"/profiles/*.profraw
objects=("$build/headroom")
for program in "$build"/headroom_*; do
  [[ -x $program && -f $program ]] && objects+=(-object "$program")
done
llvm-cov export -format=text -skip-functions -instr-profile "$build/all.profdata" "${objects[@]}" \
  "$root/src" "$root/include" >"$build/coverage.json"
python3 "$root/tests/coverage.py" "$build/coverage.json" "$root" "$build/missed.txt"
