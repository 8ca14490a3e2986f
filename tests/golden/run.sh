#!/usr/bin/env bash
# run.sh HEADROOM CASE_FILE [--update]: runs the commands of a case file and fails when it differs
# from what they print; with --update it is rewritten instead.
#
# A case file holds blocks with an empty line between them: the command as "$ headroom ARGS…", its
# standard output and standard error together, and its exit status as "[exit N]". Arguments are
# separated by blanks; there is no quoting. Commands run in an empty folder beside tests/data, so that
# ../data/logs/start/vllm_qwen2.5-1.5b.log names a file of it.
set -euo pipefail

headroom=$(readlink -f "$1")
[[ -f $2 ]] || { echo "run.sh: there is no case file $2" >&2; exit 2; }
cases=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/empty" "$work/home"
ln -s "$(dirname "$(dirname "$(readlink -f "$0")")")/data" "$work/data"
unset XDG_CONFIG_HOME HEADROOM_{CONFIG,MACHINE,THREADS,FORMAT,PRESETS,MACHINES}
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE
export NO_COLOR=1 HOME=$work/home XDG_DATA_HOME=$work/home OLLAMA_MODELS=$work/home

cd "$work/empty"
separator=''
while read -r _ _ command; do
  read -ra arguments <<<"$command"
  printf '%s$ headroom%s\n' "$separator" "${command:+ $command}"
  status=0
  "$headroom" ${arguments[@]+"${arguments[@]}"} 2>&1 </dev/null |
    sed -E 's/("commit": ?)("[0-9a-f]{12}"|null)/\1"0123456789ab"/' || status=$?
  printf '[exit %d]\n' "$status"
  separator=$'\n'
done < <(grep -E '^\$ headroom( |$)' "$cases") >"$work/actual"

if [[ ${3-} == --update ]]; then
  cmp -s "$cases" "$work/actual" || cp "$work/actual" "$cases"
else
  diff -u --label expected --label actual "$cases" "$work/actual"
fi
