#!/usr/bin/env bash
# traces.sh HEADROOM DECODER 'PROCESSES ARGS'…: a trace over processes has every rank's operators and
# communication, whose sums are those of the report.
set -euo pipefail
headroom=$1
decoder=$2
source "$(dirname "$0")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for plan in "${@:3}"; do
  read -r processes arguments <<<"$plan"
  read -ra arguments <<<"$arguments"
  for format in trace json; do
    mpirun "${mpirun_options[@]}" -n "$processes" "$headroom" measure "$decoder" "${arguments[@]}" \
      --threads 1 --runs 1 --warmup 0 -q --format "$format" >"$folder/$format" </dev/null
  done
  python3 - "$folder" "$processes" <<'END'
import json
import math
import pathlib
import sys

folder, processes = pathlib.Path(sys.argv[1]), int(sys.argv[2])
trace = json.loads((folder / "trace").read_text())
report = json.loads((folder / "json").read_text())["processes"]
assert trace["otherData"]["plan"] == report["plan"]
ranks = trace["otherData"]["ranks"]
assert [rank["rank"] for rank in ranks] == list(range(processes))
for rank, of_report in zip(ranks, report["ranks"]):
    events = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == rank["rank"] + 1]
    end = 0.0
    for event in events:
        assert event["dur"] >= 0 and math.isclose(event["ts"], end, rel_tol=1e-9, abs_tol=1e-6), event
        assert event["tid"] == (2 if event["cat"] == "communication" else 1), event
        end = event["ts"] + event["dur"]
    communication = [event for event in events if event["cat"] == "communication"]
    # Of a single run, so the medians of the report are its own times.
    seconds = sum(event["dur"] for event in communication) * 1e-6
    assert math.isclose(seconds, rank["communication_s"], rel_tol=1e-9), (seconds, rank)
    assert 0 < seconds < end * 1e-6 <= rank["time_s"], (end, rank)
    assert sum(event["args"]["matrix_flops"] for event in events) == of_report["matrix_flops"], rank
    received = [event["name"] for event in communication].count("pipeline.receive")
    assert received == (1 if of_report["stage"] > 0 else 0), communication
END
done
