#!/usr/bin/env bash
# measure_inputs.sh HEADROOM MODELS: where a measured run takes its inputs, its weights and their types
# from. MODELS: a folder of tiny models.
set -uo pipefail
headroom=$(readlink -f "$1")
models=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work NO_COLOR=1
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED  $1"
  failures=$((failures + 1))
}

# measured WORDS ARGS...: one timed run on one thread, and words that output and notes hold.
measured() {
  local words=$1
  shift
  "$headroom" measure "$@" --runs 1 --warmup 0 --threads 1 >text 2>&1 </dev/null ||
    fail "$* fails: $(cat text)"
  grep -qF -- "$words" text || fail "$*: no '$words' in: $(cat text)"
}

measured 'batch 1 · seq 2 ·' "$models/gpt2" --token-ids 1,2
measured 'seq 3 · enc-seq 3 ·' "$models/t5" --token-ids 1,2,3
measured 'batch 1 · seq 24 ·' "$models/longformer" \
  --token-ids 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24
measured 'batch 2 · seq 24 · 2 global tokens ·' "$models/longformer" --input "$models/longformer/inputs.json"
measured '2 images of 16 × 16: 10 visual tokens' "$models/aria_images" --input "$models/aria_images/inputs.json"
measured '1 clip of 1 s: 7 audio tokens' "$models/voxtral_clips" --input "$models/voxtral_clips/inputs.json"
measured 'enc-seq' "$models/t5" --input "$models/t5/inputs.json"
measured 'was taken as the preset bert-tiny' BERT-Tiny --seq 4

# Types of weights, and of the activations that they are multiplied with.
random=("$models/gpt2" --checkpoint random --seq 4)
measured 'q8_0 weights' "${random[@]}" --weights q8_0
measured 'q8_0 weights' "${random[@]}" --weights q8_0 --activations float32
measured 'fp8-16x16-s32 weights' "${random[@]}" --weights fp8-16x16-s32
measured 'bfloat16 weights' "$models/gpt2" --seq 4 --weights bfloat16 --activations float32
measured 'float32' "$models/gpt2" --seq 4 --weights float32

# A generation shows its tokens, and saves them with the outputs of the prompt.
generate=("$models/gpt2" --phase generate --new-tokens 2 --seq 3)
measured 'generated_ids' "${generate[@]}" --show-tokens --json
measured '2 new tokens' "${generate[@]}" --save-output generated.safetensors
grep -q 'generated_ids' generated.safetensors || fail 'no ids are saved'
measured 'seq 21' "$models/gpt2" --input "$models/gpt2/inputs.json" --save-output saved.safetensors
for tensor in generate.ids generate.logits logits; do
  grep -q "\"$tensor\"" saved.safetensors || fail "no $tensor is saved"
done

((failures == 0)) && echo 'all runs passed'
exit $((failures > 0))
