#!/usr/bin/env bash
# timed.sh HEADROOM SCHEMAS DECODER MIXTURE 'PROCESSES DEGREES'…: collectives are measured between
# processes, and a comparison over processes has exact counts and the times of every rank, in every
# phase.
set -euo pipefail
headroom=$1
schemas=$2
decoder=$3
mixture=$4
source "$(dirname "$0")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder

# refused TEXT COMMAND…: the command fails with this text.
refused() {
  if "${@:2}" >"$folder/out" 2>"$folder/err" </dev/null || ! grep -qF -- "$1" "$folder/err"; then
    echo "FAILED: no \"$1\" from ${*:2}"
    cat "$folder/out" "$folder/err"
    exit 1
  fi
}

pair=(mpirun "${mpirun_options[@]}" -n 2 "$headroom")
refused 'this machine is not calibrated' "${pair[@]}" calibrate --collectives
refused 'add --collectives' "${pair[@]}" calibrate --quick
refused 'one was started' "$headroom" calibrate --collectives
"$headroom" calibrate --quick --threads 1 -q >"$folder/out"
refused 'mpirun -n 2 headroom calibrate --collectives' \
  "${pair[@]}" compare bert-tiny --tp 2 --threads 1 --runs 5
refused 'applies only to kernels' "${pair[@]}" calibrate --collectives --threads 1
"${pair[@]}" calibrate --collectives --quick -q --json >"$folder/profile.json" </dev/null
mpirun "${mpirun_options[@]}" -n 4 "$headroom" calibrate --collectives --quick -q \
  >"$folder/out" </dev/null
number=0
# compared PROCESSES ARGS…: without a verdict on time, which this test cannot have.
compared() {
  number=$((number + 1))
  mpirun "${mpirun_options[@]}" -n "$1" "$headroom" compare "${@:2}" --threads 1 --runs 5 -q \
    --tolerance time=1e9% --tolerance ttft_s=1e9% --tolerance tpot_s=1e9% --json \
    >"$folder/$number.json" </dev/null
}
for plan in "${@:5}"; do
  read -r processes degrees <<<"$plan"
  read -ra degrees <<<"$degrees"
  compared "$processes" bert-tiny "${degrees[@]}"
  compared "$processes" "$decoder" "${degrees[@]}" --phase decode --past 16
  compared "$processes" "$decoder" "${degrees[@]}" --phase generate --seq 8 --new-tokens 4
done
compared 2 "$decoder" --pp 2 --batch 4 --micro-batch 1 --seq 8
compared 2 "$decoder" --pp 2 --batch 4 --micro-batch 2 --phase generate --seq 8 --new-tokens 4
compared 2 "$mixture" --dp 2 --ep 2 --batch 2 --seq 8
compared 2 "$mixture" --dp 2 --ep 2 --batch 2 --phase decode --past 16
compared 2 "$mixture" --dp 2 --ep 2 --batch 2 --phase generate --seq 8 --new-tokens 4
python3 - "$folder" "$schemas" "$number" <<'END'
import json
import pathlib
import sys

folder, schemas = map(pathlib.Path, sys.argv[1:3])
profile = json.loads((folder / "profile.json").read_text())
tables = profile["collectives"]["tables"]
names = [table["collective"] for table in tables]
assert names == ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]
for table in tables:
    assert (table["processes"], table["ranks"], table["hosts"]) == (2, 2, 1), table
    first, last = table["points"][0], table["points"][-1]
    assert last["bytes"] == first["bytes"] * 4 ** 8 and last["seconds"] > first["seconds"], table
reports = [json.loads(path.read_text()) for path in sorted(folder.glob("[0-9]*.json"))]
assert len(reports) == int(sys.argv[3]) >= 6
for report in reports:
    rows = {row["quantity"]: row for row in report["rows"]}
    for count in ("parameters", "matrix_flops", "weight_bytes", "peak_activation_bytes"):
        assert rows[count]["result"] == "pass" and rows[count]["tolerance"] == 0, rows[count]
    processes = report["processes"]
    ranks = processes["ranks"]
    assert [rank["rank"] for rank in ranks] == list(range(len(ranks)))
    for side in ("predicted", "measured"):
        computation = [rank[f"{side}_s"] - rank[f"{side}_communication_s"] for rank in ranks]
        assert min(computation) > 0 and ranks[0][f"{side}_communication_s"] > 0, ranks
        assert computation[processes[f"slowest_{side}_rank"]] == max(computation)
    # The run ends with the last stage.
    assert abs(rows["time_s"]["predicted"] / ranks[-1]["predicted_s"] - 1) < 1e-9
try:
    import jsonschema
except ImportError:
    sys.exit()
for name, documents in (("machines", [profile]), ("compare", reports)):
    schema = json.loads((schemas / f"{name}.schema.json").read_text())
    for document in documents:
        jsonschema.validate(document, schema)
END
