#!/usr/bin/env bash
# failures.sh HEADROOM: a run over several processes fails with one message, the exit status of the
# worst rank, and within ten seconds.
set -uo pipefail
headroom=$1
source "$(dirname "$0")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# expect NAME STATUS TEXT: judges the run whose status is in `status` and whose time in `seconds`.
expect() {
  local errors
  errors=$(grep -c '^headroom: error' "$folder/err")
  if ((status != $2)) || ((errors != 1)) || ((seconds > 10)) || ! grep -qF -- "$3" "$folder/err" ||
    [[ -s $folder/out ]]; then
    printf 'FAILED: %s: status %d, %d messages, %d s\n' "$1" "$status" "$errors" "$seconds"
    cat "$folder/out" "$folder/err"
    failed=1
  else
    printf 'passed: %s\n' "$1"
  fi
}

# run ARGS...: of mpirun.
run() {
  local start=$SECONDS
  timeout 60 mpirun "${mpirun_options[@]}" "$@" >"$folder/out" 2>"$folder/err" </dev/null
  status=$?
  seconds=$((SECONDS - start))
}

measure=("$headroom" measure bert-tiny --threads 1 --runs 1 --seq 8)
run -n 2 "${measure[@]}" --tp 2 --pp 2
expect 'too few processes' 2 'the plan tp 2 · pp 2 needs 4 processes, not 2'

run -n 1 "${measure[@]}" --tp 2 --seed 1 : -n 1 "${measure[@]}" --tp 2 --seed 2
expect 'other weights' 2 'rank 1 of 2: runs other weights than rank 0'

run -n 1 "${measure[@]}" --tp 2 : -n 1 "$headroom" measure bert-mini --threads 1 --runs 1 --seq 8 --tp 2
expect 'another model' 2 'rank 1 of 2: runs another model than rank 0'

run -n 2 "${measure[@]}" --tp 2 --batch 100000000
expect 'too little memory on all ranks' 3 'a run needs at least'

run -n 1 "${measure[@]}" --tp 2 --batch 40000 : -n 1 bash -c "ulimit -v 700000; exec \"\$@\"" - \
  "${measure[@]}" --tp 2 --batch 40000
expect 'too little memory on one rank' 3 'rank 1 of 2'

run -n 3 "$headroom" measure bert-tiny --tp 3
expect 'an illegal plan' 2 '--tp 3'

# The windowed layers of MiMo-V2-Flash have twice the key-value heads of the others.
run -n 2 "$headroom" measure "$(dirname "$0")/../data/families/mimo_v2_flash" --tp 2
expect 'key-value heads of a layer' 2 "a run does not divide a number of key-value heads"

run -n 2 "$headroom" measure bert-tiny --runs 1
status_of_copies=$status
grep -q 'processes were started, and the plan has one' "$folder/err" && ((status_of_copies == 2)) ||
  { echo 'FAILED: several processes without a plan'; cat "$folder/err"; failed=1; }

# A rank that dies in a long run takes the others along.
start=$SECONDS
timeout 60 mpirun "${mpirun_options[@]}" -n 2 "$headroom" measure bert-tiny --tp 2 --threads 1 \
  --runs 1000000 --seq 8 >"$folder/out" 2>"$folder/err" </dev/null &
job=$!
victim=''
for _ in {1..30}; do  # both ranks have started
  sleep 1
  mapfile -t ranks < <(pgrep -P "$(pgrep -P "$job")" -f 'measure bert-tiny')
  ((${#ranks[@]} < 2)) || { victim=${ranks[1]}; break; }
done
[[ -n $victim ]] || { echo 'FAILED: no ranks started'; kill "$job"; exit 1; }
sleep 2
killed=$SECONDS
kill -KILL "$victim"
wait "$job"
status=$?
if ((status == 0)) || ((SECONDS - killed > 10)); then
  echo "FAILED: a rank that dies: status $status after $((SECONDS - killed)) s"
  failed=1
else
  echo 'passed: a rank that dies'
fi
exit $failed
