#!/usr/bin/env bash
# own_machine.sh HEADROOM: what commands say and predict before this machine is calibrated, after a
# quick calibration, and with a profile that another machine or build made.
set -uo pipefail
headroom=$(readlink -f "$1")
data=$(dirname "$(dirname "$(readlink -f "$0")")")/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work NO_COLOR=1
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED  $1"
  failures=$((failures + 1))
}

# expect STATUS WORDS ARGS...: the exit status, and words that output and errors hold.
expect() {
  local expected=$1 words=$2 status=0
  shift 2
  "$headroom" "$@" >text 2>&1 </dev/null || status=$?
  ((status == expected)) || fail "$* exits with $status: $(cat text)"
  grep -qF -- "$words" text || fail "$*: no '$words' in: $(cat text)"
}

# Memory needs no calibration, but a speed does.
fit=(fit gpt2 --machine here)
expect 0 'unknown: this machine is not calibrated' "${fit[@]}" --memory 64GiB
expect 0 'so the plan has no time: `headroom calibrate`' "${fit[@]}" --memory 64GiB
for option in '--matrix-efficiency 0.5' '--memory-efficiency 0.5' '--network-efficiency 0.5' \
  '--intra-node-bandwidth 10GB' '--inter-node-bandwidth 10GB'; do
  read -ra words <<<"$option"
  expect 2 'this machine is not calibrated' "${fit[@]}" "${words[@]}"
done
expect 0 '(assumed: two channels of DDR5-5600)' fit gpt2 --machine h100-80gb --host here --memory 64GiB
expect 2 'this machine is not calibrated' calibrate --weights q4_k
expect 2 'leave out --threads' calibrate --weights q4_k --threads 1

expect 0 'GEMM peak' calibrate --quick --threads 1
profile=$(echo "$work"/headroom/machines/here-*.json)
[[ -f $profile ]] || { fail 'no profile is stored'; exit 1; }
expect 0 'quick' system
expect 0 'here: ' machines
expect 0 'measured: headroom calibrate' "${fit[@]}" --memory 64GiB
expect 0 '64.00 GiB' fit gpt2 --machine h100-80gb --host here --host-memory 64GiB
expect 0 'headroom calibrate' fit gpt2 --machine h100-80gb --host here --host-memory 64GiB
expect 2 'was not calibrated with 2 threads' analyze gpt2 --machine here --threads 2
echo '{"command": ["fit", "gpt2", "--dtype", "float32", "--memory", "64GiB"], "time_s": 1}' >runs.jsonl
expect 2 'a machine of the catalogue is needed' calibrate --from runs.jsonl --machine here
expect 2 'rates are measured, without efficiencies to fit' calibrate --from runs.jsonl --machine "$profile"

# Counts are exact; no time of so short runs is judged here.
compare=(compare --threads 1 --runs 1 --tolerance time=100000%)
expect 0 '0    exact  PASS' "${compare[@]}" bert-tiny --seq 8
expect 0 'embeddings.word_embeddings' "${compare[@]}" bert-tiny --seq 8 --detail --tolerance ops=100000%
expect 0 'was taken as the preset bert-tiny' "${compare[@]}" BERT-Tiny --seq 8
expect 0 '3 new tokens' "${compare[@]}" "$data/golden/models/gpt2" --phase generate --seq 4 --new-tokens 3
expect 0 'calibrating GEMMs of Q8_0 weights' "${compare[@]}" bert-tiny --seq 8 --weights q8_0
expect 0 'GEMMs of Q8_0 weights were measured quickly' "${compare[@]}" bert-tiny --seq 8 --weights q8_0
expect 0 'bfloat16 weights' "${compare[@]}" bert-tiny --seq 8 --weights bfloat16

# A measurement of headroom's own states its types and logits, and is compared with a prediction of them.
"$headroom" measure "$data/golden/models/gpt2" --seq 4 --runs 1 --threads 1 --logits last \
  --weights bfloat16 --format json -o own.json --quiet || fail 'measure writes no own.json'
expect 0 'bfloat16 weights · float32 · eager attention · last logits' compare "$data/golden/models/gpt2" --import own.json --tolerance time=100000%
expect 2 'is stated by the imported file' compare "$data/golden/models/gpt2" --import own.json --logits last

expect 0 'predicted' complexity layer-ffn --seq 4,8 --machine here
expect 0 'measured' complexity BERT-Tiny --seq 4,8 --measure --runs 2 --threads 1
grep -q 'was taken as the preset' text || fail 'complexity does not note an inexact name'
expect 0 'predicted' complexity bert-tiny --study shares --seq 4,8 --measure --runs 1 --threads 1

# Runs that would take too long are named, and leave gaps.
study=(complexity --measure --runs 1 --most-seconds 1 --threads 1)
expect 0 's = 1000000: may take' "${study[@]}" layer-self-attention --seq 1,1000000
expect 0 'not run: generation of 1000: may take' "${study[@]}" gpt2 --study generation --new-tokens 2,1000

# A profile of another processor, library or compiler predicts nothing here.
cp "$profile" kept.json
# stale WORDS SED_EXPRESSION: the profile, changed so, is refused with these words.
stale() {
  sed -E "$2" kept.json >"$profile"
  cmp -s kept.json "$profile" && fail "the profile has no field for $2"
  expect 2 "the stored profile $1" analyze gpt2 --machine here
  expect 0 'unknown: this machine is not calibrated' "${fit[@]}" --memory 64GiB
  "$headroom" complexity layer-ffn --seq 4 --measure --runs 1 --threads 1 >text 2>&1
  grep -q 'predicted' text && fail "complexity predicts by a profile that $1"
}
stale 'was measured on' 's/("cpu": ")/\1another /'
stale 'was measured on 4000' 's/("logical_cpus": )[0-9]+/\14000/'
stale 'was measured with another' 's/("backend": ")/\1another /'
stale 'was measured with another' 's/("compiler": ")/\1another /'

((failures == 0)) && echo 'all commands passed'
exit $((failures > 0))
