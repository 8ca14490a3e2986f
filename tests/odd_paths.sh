#!/usr/bin/env bash
# odd_paths.sh HEADROOM CONFIG: a model in a folder with quotes, blanks and commas in its name is read,
# quoted in CSV, and quoted for a shell in the commands that fit suggests.
set -uo pipefail
headroom=$(readlink -f "$1")
config=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work
cd "$work" || exit 1
model="it's a \"model\", v2"
mkdir "$model"
cp "$config" "$model/config.json"
failures=0

fail() {
  echo "FAILED  $1"
  failures=$((failures + 1))
}

# holds LINE ARGS...: standard output has a line that begins so.
holds() {
  local line=$1
  shift
  "$headroom" "$@" -q >out 2>err || fail "$*: $(cat err)"
  grep -qF -- "$line" out || fail "$*: no '$line' in: $(cat out)"
}

field='"it'\''s a ""model"", v2"'
holds "$field,embeddings," analyze "$model" gpt2 --format csv
holds "$field,1,embeddings," analyze "$model" gpt2 --batch 1,2 --format csv
holds "model,quantity,$field,gpt2,ratio" diff "$model" gpt2 gpt2-medium --format csv
holds 'prefill,eager' sweep "$model" --batch 1 --seq 8

# The first suggestion, read by a shell, fits.
"$headroom" fit "$model" --machine t4 --batch 100000000 --seq 32 >out 2>&1
[[ $? == 1 ]] || fail "a batch that is too large: $(cat out)"
suggestion=$(sed -n 's/^.*  headroom fit /fit /p' out | head -n 1)
[[ -n $suggestion ]] || fail "no suggestion in: $(cat out)"
printf '"$1" %s\n' "$suggestion" >suggested.sh
bash suggested.sh "$headroom" >out 2>&1 || fail "$suggestion: $(cat out)"
grep -q '^verdict *FITS' out || fail "$suggestion does not fit: $(cat out)"

((failures == 0)) && echo 'all commands passed'
exit $((failures > 0))
