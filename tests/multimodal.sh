#!/usr/bin/env bash
# multimodal.sh HEADROOM CONFIG TOKEN: measure runs the text of a multimodal model alone and says so,
# refuses the placeholder of an image among the token ids, and runs images.
set -euo pipefail

headroom=$(readlink -f "$1")
config=$(readlink -f "$2")
token=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_DATA_HOME=$work
cd "$work"

"$headroom" measure "$config" --tokens 1,2,3 --runs 1 >out 2>err
grep -q "text alone" err || { echo "no note on the tower: $(cat err)" && exit 1; }

status=0
"$headroom" measure "$config" --tokens "1,$token,3" --runs 1 >out 2>err || status=$?
[[ $status == 2 && ! -s out ]] || { echo "exit status $status" && exit 1; }
grep -q "$token" err || { echo "does not name the token: $(cat err)" && exit 1; }
echo "refused: $(head -n 1 err)"

"$headroom" measure "$config" --images 1 --runs 1 >out 2>err
! grep -q "text alone" err || { echo "a note on images that there are" && exit 1; }
grep -q "1 image of" out || { echo "no images in the report: $(cat out)" && exit 1; }
grep -q "vision_tower" out || { echo "no tower in the report: $(cat out)" && exit 1; }
