#!/usr/bin/env bash
# run.sh BUILD_DIR SOURCE_DIR: installs the build into a temporary folder, builds the project in
# SOURCE_DIR against it, and runs that project and the installed headroom. Checks that manual pages
# and completions are installed and name every command.
set -euo pipefail

build=$(readlink -f "$1")
source=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

cmake --install "$build" --prefix "$work/installed" >/dev/null
cmake -S "$source" -B "$work/build" -G "$(cached CMAKE_GENERATOR)" \
  -DCMAKE_PREFIX_PATH="$work/installed" -DCMAKE_BUILD_TYPE="$(cached CMAKE_BUILD_TYPE)" \
  -DCMAKE_C_COMPILER="$(cached CMAKE_C_COMPILER)" -DCMAKE_CXX_COMPILER="$(cached CMAKE_CXX_COMPILER)"
cmake --build "$work/build"

cd "$work"
export HOME=$work/home XDG_DATA_HOME=$work/home
build/consumer
build/c_consumer
installed/bin/headroom analyze bert-base

fail() { echo "$1" >&2; exit 1; }
share=$work/installed/share
commands=$(installed/bin/headroom --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
[[ $commands == *analyze* ]] || fail 'no commands in --help'
sed 's/\\-/-/g' "$share/man/man1/headroom.1" >overview
for command in $commands; do
  page=$share/man/man1/headroom-$command.1
  grep -q "^\.SH SYNOPSIS" "$page" || fail "no manual page of $command"
  grep -qw -- "$command" overview || fail "headroom(1) lacks $command"
  for completion in bash-completion/completions/headroom zsh/site-functions/_headroom \
    fish/vendor_completions.d/headroom.fish; do
    grep -qw "$command" "$share/$completion" || fail "$completion lacks $command"
  done
done

# A C program by pkg-config. A sanitized library needs a sanitized program.
if [[ $(cached HEADROOM_SANITIZE) != ON ]] && command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$work/installed" -name headroom.pc)")
  export PKG_CONFIG_PATH
  # shellcheck disable=SC2046 # several words on purpose
  cc -o by_pkg_config "$source/main.c" $(pkg-config --cflags --libs headroom)
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir headroom) ./by_pkg_config >/dev/null
fi
