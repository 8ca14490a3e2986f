#!/usr/bin/env bash
# check.sh: runs each line of $CHECKS as a command line of $HEADROOM, and adds its report to the job's
# summary. Exit status: 1 if a verdict failed, 2 if a check could not run, 0 if all held.
set -euo pipefail

headroom=${HEADROOM:?path of headroom}
summary=${GITHUB_STEP_SUMMARY:-/dev/null}
worst=0 checks=0

while read -r check; do
  [[ $check && $check != \#* ]] || continue
  checks=$((checks + 1))
  # Words as a shell would split them, but without expanding anything.
  mapfile -t words < <(xargs -n 1 printf '%s\n' <<<"$check")
  echo "::group::headroom $check"
  status=0
  report=$("$headroom" "${words[@]}" --format markdown) || status=$?
  echo "$report"
  echo '::endgroup::'
  case $status in
    0) result=held ;;
    1) result='exceeded' ;;
    *) result="did not run (exit status $status)" ;;
  esac
  printf '### `headroom %s`: %s\n\n%s\n\n' "$check" "$result" "$report" >>"$summary"
  if ((status != 0)); then
    echo "::error::headroom $check: $result"
    ((worst >= 2)) || worst=$((status == 1 ? 1 : 2))
  fi
done <<<"${CHECKS-}"

if ((checks == 0)); then
  echo '::error::no checks were given'
  exit 2
fi
exit "$worst"
