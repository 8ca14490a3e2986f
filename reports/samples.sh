#!/usr/bin/env bash
# samples.sh HEADROOM [--check]: rewrites samples/ with the commands that README.md lists, or fails
# when samples/ is not what they write.
set -euo pipefail

headroom=$(readlink -f "$1")
reports=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/samples" "$work/home"
unset XDG_CONFIG_HOME HEADROOM_{CONFIG,MACHINE,THREADS,FORMAT,PRESETS,MACHINES}

cd "$work/samples"
sed -nE 's/^\|.*\| .headroom (.*). \|$/\1/p' "$reports/README.md" |
  while read -ra arguments; do
    HOME=$work/home XDG_DATA_HOME=$work/home "$headroom" "${arguments[@]}" </dev/null
  done

# The commit changes with every commit.
sed -i -E 's/("commit": ?)("[0-9a-f]{12}"|null)/\1"0123456789ab"/' ./*

if [[ ${2-} == --check ]]; then
  diff -ru "$reports/samples" . || { echo "samples are out of date: see reports/README.md"; exit 1; }
else
  rm -rf "$reports/samples"
  cp -r . "$reports/samples"
fi
