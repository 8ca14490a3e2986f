#!/usr/bin/env bash
# build_times.sh [--without-tests] [FOLDER]: the three build times of docs/developing.md, measured on a fresh clone
# of this repository's last commit in FOLDER (a temporary one, removed afterwards, if none is named).
# Packages must be installed already: ./dev setup. Prints a Markdown table.
set -euo pipefail

root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
tests=1
if [[ ${1-} == --without-tests ]]; then
  tests=0
  shift
fi
if (($#)); then
  work=$(readlink -m "$1")
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
clone=$work/headroom
unset HEADROOM_CMAKE_ARGS

# seconds COMMAND...: runs it, its output to standard error, and prints how long it took.
seconds() {
  local start end
  start=$(date +%s.%N)
  "$@" >&2 || { echo "build_times: \`$*\` failed" >&2; exit 1; }
  end=$(date +%s.%N)
  awk -v a="$start" -v b="$end" 'BEGIN { printf "%.0f", b - a }'
}

# A family that the first step below has compiled, with a line more.
change_family() {
  local family
  family=$(find "$clone/src/spec/families" -name 'llama.cpp')
  [[ -n $family ]] || { echo 'build_times: there is no family llama.cpp' >&2; exit 1; }
  printf '\nnamespace headroom::detail { [[maybe_unused]] constexpr int kOneLineMore = 1; }\n' >>"$family"
}

git clone --quiet "$root" "$clone"
run=$(seconds "$clone/dev" run analyze bert-base)
tested=–
((tests == 0)) || tested=$(seconds "$clone/dev" test)
change_family
changed=$(seconds "$clone/dev" run analyze bert-base)

processor=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
compiler=$(c++ --version | head -n 1)
cat <<END
$(git -C "$clone" log -1 --format=%h) · $(date +%F) · $processor, $(nproc) processors · $compiler

| Step | Seconds |
| :-- | --: |
| \`./dev run analyze bert-base\`, fresh clone | $run |
| \`./dev test\` after that, build and run | $tested |
| one-line change in a family, then \`./dev run\` | $changed |
END
