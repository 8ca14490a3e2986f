#!/usr/bin/env bash
# Measures which lines and branches the tests reach, with clang's source-based coverage.
#
# usage: coverage.sh [CTEST ARGS...]
#
# Builds in build/coverage, runs CTest there, and prints a table by module; the uncovered branches of
# base, checkpoint and spec go to build/coverage/missed.txt.
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
LLVM_PROFILE_FILE="$build/profiles/%4m.profraw" ctest --test-dir "$build" -j "$(nproc)" "$@" |
  tail -n 20 || echo 'some tests failed' >&2
llvm-profdata merge -o "$build/all.profdata" "$build"/profiles/*.profraw
programs=()
for program in "$build"/headroom "$build"/headroom_*; do
  [[ -x $program && -f $program ]] && programs+=(-object "$program")
done
llvm-cov export -format=text -skip-functions -instr-profile "$build/all.profdata" "${programs[@]}" \
  "$root/src" "$root/include" >"$build/coverage.json"
python3 "$root/tests/coverage.py" "$build/coverage.json" "$root" "$build/missed.txt"
