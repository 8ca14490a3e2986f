#!/usr/bin/env bash
# strict.sh HEADROOM: every command that reads a model notes a key that it does not know, marks its
# JSON incomplete, and refuses the key with --strict.
set -euo pipefail

headroom=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work
cd "$work"
cat >odd.json <<'JSON'
{"model_type": "gpt2", "n_embd": 32, "n_head": 2, "n_layer": 1, "n_positions": 16, "vocab_size": 16,
 "favourite_colour": "blue"}
JSON
echo '[{"avg_ts": 200.0, "n_prompt": 16, "n_gen": 0}]' >bench.json

failures=0
fail() {
  echo "FAILED  $1"
  failures=$((failures + 1))
}

check() {
  local marks=$1
  shift
  local status=0
  "$headroom" "$@" >out 2>err || status=$?
  # 1 is a verdict.
  [[ $status -le 1 ]] || fail "$* exits with $status: $(cat err)"
  grep -q favourite_colour err || fail "$* does not note the key"
  if [[ $marks == complete ]]; then
    grep -q '"complete": false' out || fail "$* does not say that it is incomplete"
  fi
  status=0
  "$headroom" "$@" --strict >out 2>err || status=$?
  [[ $status == 2 ]] || fail "$* --strict exits with $status"
  grep -q -- "--strict refuses: favourite_colour" err || fail "$* --strict does not name the key"
}

check complete analyze odd.json --format json
check complete explain odd.json --format json
check complete diff gpt2 odd.json --format json
check complete fit odd.json --machine t4 --format json
check complete plan odd.json --machine t4 --serve --format json
check none sweep odd.json --batch 1,2
check none complexity odd.json --seq 4,8
check complete measure odd.json --runs 1 --format json
check none compare odd.json --import bench.json --machine t4 --format json

# A quantisation of unknown bytes; an empty one is none.
sed 's/"favourite_colour": "blue"/"quantization_config": {"quant_method": "quanto"}/' odd.json >quanto.json
"$headroom" analyze quanto.json --format json 2>/dev/null | grep -q '"complete": false' ||
  fail "bytes of an unknown method count as known"
sed 's/"favourite_colour": "blue"/"quantization_config": {}/' odd.json >plain.json
"$headroom" analyze plain.json --format json 2>/dev/null | grep -q '"complete": true' ||
  fail "an empty quantization_config is a method"
[[ $failures == 0 ]] && echo "all commands passed"
exit $((failures > 0))
