#!/usr/bin/env bash
# builds.sh CHECK: a rank of another version ends all within ten seconds, with one message.
set -uo pipefail
source "$(dirname "$0")/mpirun.sh"
start=$SECONDS
out=$(timeout 60 mpirun "${mpirun_options[@]}" -n 3 "$1" 2>/dev/null </dev/null)
status=$?
wanted='rank 2 of 3: runs another build of headroom than rank 0: 0.9.0 an-older-commit instead of 1.0.0 a-commit'
if ((status != 2)) || ((SECONDS - start > 10)) || [[ $out != "$wanted" ]]; then
  printf 'FAILED: status %d after %d s: %s\n' "$status" $((SECONDS - start)) "$out"
  exit 1
fi
echo 'passed'
