#!/usr/bin/env bash
# import_options.sh HEADROOM IMPORTS: compare --import refuses options that would change nothing.
set -euo pipefail
headroom=$1 imports=$2
failures=0

# refused FILE WORDS OPTIONS...: exit status 2, and an error with these words.
refused() {
  local file=$1 words=$2 status=0 error
  shift 2
  error=$("$headroom" compare llama-3-8b --import "$imports/$file" --machine h100-80gb "$@" 2>&1 >/dev/null) ||
    status=$?
  [[ $status == 2 && $error == *"$words"* ]] && return
  printf '%s %s: exit status %d, %s\n' "$file" "$*" "$status" "$error"
  failures=$((failures + 1))
}

refused llama_bench.json '--batch is stated by the imported file' --batch 3
refused llama_bench.json '--past is stated by the imported file' --past 7
refused llama_bench.json '--threads has no effect on h100-80gb' --threads 3
refused llama_bench.json '--runs has no effect on a run in a file' --runs 5
refused vllm_latency.json 'one value of each setting' --batch 1,8 --seq 32 --new-tokens 128

# A calibrated profile has times by the number of threads.
"$headroom" compare gpt2 --import "$imports/optimum.json" \
  --machine "$imports/../machines/pytorch_cpu.json" --seq 128 --threads 1 >/dev/null 2>&1 ||
  [[ $? == 1 ]] || {
    echo '--threads is refused with a calibrated profile'
    failures=$((failures + 1))
  }

# All requests of an offline run are one batch.
"$headroom" compare llama-3-8b --import "$imports/vllm_throughput.json" --machine h100-80gb \
  --seq 512 --new-tokens 128 2>/dev/null | grep 'batch 16' >/dev/null || {
  echo 'the requests of vllm_throughput.json are not one batch'
  failures=$((failures + 1))
}
[[ $failures == 0 ]] && echo 'all options checked'
exit $((failures > 0))
