#!/usr/bin/env bash
# import_options.sh HEADROOM IMPORTS: compare --import refuses options that would change nothing, and
# takes the workload that a file states.
set -euo pipefail
headroom=$1 imports=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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

# says WORDS MODEL FILE OPTIONS...: a comparison with these words, whatever its verdict.
says() {
  local words=$1 model=$2 file=$3 text
  shift 3
  text=$("$headroom" compare "$model" --import "$file" "$@" 2>&1) || true
  [[ $text == *"$words"* ]] && return
  printf '%s %s: no "%s" in: %s\n' "$file" "$*" "$words" "$text"
  failures=$((failures + 1))
}

# lacks WORDS MODEL FILE OPTIONS...: a comparison without these words.
lacks() {
  local words=$1 model=$2 file=$3 text
  shift 3
  text=$("$headroom" compare "$model" --import "$file" "$@" 2>&1) || true
  [[ $text != *"$words"* ]] && return
  printf '%s %s: "%s" in: %s\n' "$file" "$*" "$words" "$text"
  failures=$((failures + 1))
}

# Notes on what a start-up log leaves out.
logs=$imports/../logs/start
one='the log states no tensor_parallel_size: one device is assumed'
bytes='the log states no bytes of the KV-cache, so its tokens are not predicted'
context='the log states no n_ctx, so its KV-cache is not predicted'
says "$one" qwen2.5-1.5b "$logs/vllm_qwen2.5-1.5b.log"
lacks "$bytes" qwen2.5-1.5b "$logs/vllm_qwen2.5-1.5b.log"
grep -v 'Available KV cache memory' "$logs/vllm_qwen2.5-1.5b.log" >"$work/tokens.log"
says "$bytes" qwen2.5-1.5b "$work/tokens.log"
{
  echo "INFO core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: tensor_parallel_size=2,"
  cat "$logs/vllm_qwen2.5-1.5b.log"
} >"$work/two.log"
lacks "$one" qwen2.5-1.5b "$work/two.log"
lacks "$context" gpt-oss-20b "$logs/llama_cpp_gpt-oss-20b.log"
{
  echo 'llama_kv_cache_init:        CPU KV buffer size =   112.00 MiB'
  echo 'llama_new_context_with_model: KV self size  =  112.00 MiB, K (f16):   56.00 MiB, V (f16):   56.00 MiB'
  echo 'llama_new_context_with_model:        CPU compute buffer size =   300.75 MiB'
} >"$work/old.log"
says "$context" qwen3-1.7b "$work/old.log"

# A measurement of headroom's own states both lengths, and the tokens with global attention.
models=$imports/../golden/models
own=(--runs 1 --warmup 0 --threads 1 --json -q)
"$headroom" measure "$models/t5" --seq 4 --enc-seq 6 "${own[@]}" >"$work/t5.json"
says 'seq 4 · enc-seq 6' "$models/t5" "$work/t5.json" --machine h100-80gb
"$headroom" measure "$models/longformer" --seq 24 --global-tokens 3 "${own[@]}" >"$work/longformer.json"
says '3 global tokens' "$models/longformer" "$work/longformer.json" --machine h100-80gb

# Predictions of generations have a largest number of tokens.
echo '[{"n_prompt": 64, "n_gen": 100000000, "avg_ts": 40.0}]' >"$work/long.json"
says 'states 100000001 generated tokens' llama-3-8b "$work/long.json" --machine h100-80gb
says 'predictions take 1 to' llama-3-8b "$work/long.json" --machine h100-80gb
[[ $failures == 0 ]] && echo 'all options checked'
exit $((failures > 0))
