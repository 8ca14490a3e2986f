#!/usr/bin/env bash
# run.sh BUILD_DIR SOURCE_DIR: installs the build into a temporary folder, builds the project in
# SOURCE_DIR against it, and runs that project and the installed headroom.
set -euo pipefail

build=$(readlink -f "$1")
source=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

cmake --install "$build" --prefix "$work/installed" >/dev/null
cmake -S "$source" -B "$work/build" -G "$(cached CMAKE_GENERATOR)" \
  -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)" \
  -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)"
cmake --build "$work/build"

cd "$work"
export HOME=$work/home XDG_DATA_HOME=$work/home
build/consumer
installed/bin/headroom analyze bert-base
