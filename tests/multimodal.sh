#!/usr/bin/env bash
# multimodal.sh HEADROOM CONFIG TOKEN [sound]: measure runs the text of a multimodal model alone and
# says so, refuses the placeholder of an image (or of sound) among the token ids, and runs images
# (or sound).
set -euo pipefail

headroom=$(readlink -f "$1")
config=$(readlink -f "$2")
token=$3
inputs=(--images 1) note="text only" words="1 image of" tower=vision_tower
if [[ ${4:-} == sound ]]; then
  inputs=(--audio 1 --audio-seconds 1) note="no sound" words="1 clip of 1 s" tower=audio_tower
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work
cd "$work"

"$headroom" measure "$config" --token-ids 1,2,3 --runs 1 >out 2>err
grep -q "$note" err || { echo "no note on the tower: $(cat err)" && exit 1; }

status=0
"$headroom" measure "$config" --token-ids "1,$token,3" --runs 1 >out 2>err || status=$?
[[ $status == 2 && ! -s out ]] || { echo "exit status $status" && exit 1; }
grep -q "$token" err || { echo "does not name the token: $(cat err)" && exit 1; }
echo "refused: $(head -n 1 err)"

"$headroom" measure "$config" "${inputs[@]}" --runs 1 >out 2>err
! grep -q "$note" err || { echo "a note on inputs that there are" && exit 1; }
grep -q "$words" out || { echo "no such inputs in the report: $(cat out)" && exit 1; }
grep -q "$tower" out || { echo "no tower in the report: $(cat out)" && exit 1; }
