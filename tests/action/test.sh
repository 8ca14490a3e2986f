#!/usr/bin/env bash
# test.sh HEADROOM: the budget action's verdicts, and the summary that it writes.
set -euo pipefail

headroom=$(readlink -f "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HEADROOM=$headroom GITHUB_STEP_SUMMARY=$work/summary XDG_DATA_HOME=$work HOME=$work

# expect STATUS TEXT CHECKS: runs the checks; the summary must contain TEXT.
expect() {
  local status=0
  : >"$GITHUB_STEP_SUMMARY"
  CHECKS=$3 bash "$root/.github/actions/budget/check.sh" >"$work/log" || status=$?
  if ((status != $1)) || ! grep -qF "$2" "$GITHUB_STEP_SUMMARY"; then
    printf 'status %s, not %s, or no "%s" in the summary of\n%s\n' "$status" "$1" "$2" "$3"
    cat "$work/log"
    exit 1
  fi
}

fits='fit llama-3-8b --machine h100-80gb'
exceeds='fit llama-3-70b --machine rtx-4090'
expect 0 "headroom $fits\`: held" "$fits"
expect 1 'exceeded' "$exceeds"
expect 1 "headroom $fits\`: held" "$exceeds
# a comment

$fits"
expect 2 'did not run (exit status 2)' "fit llama-3-8b --machine no-such-machine
$exceeds"
expect 2 'did not run (exit status 3)' "analyze '/no/such folder/config.json'"
expect 0 '109,482,240' 'analyze bert-base'
cd "$work"
expect 2 'did not run' "analyze \$(touch written)"
[[ ! -e written ]] || { echo 'a check ran a command'; exit 1; }
# Nothing to check is no budget that holds.
status=0
CHECKS='' bash "$root/.github/actions/budget/check.sh" >"$work/log" || status=$?
((status == 2))
grep -q 'no checks were given' "$work/log"
