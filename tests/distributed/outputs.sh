#!/usr/bin/env bash
# outputs.sh HEADROOM MIXTURE: --save-output, --show-tokens and the JSON report of a run over several
# processes against those of one; of a mixture of experts, those of replicas that share the experts.
set -euo pipefail
headroom=$1
mixture=$2
source "$(dirname "$0")/mpirun.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run=(measure bert-tiny --batch 2 --seq 6 --threads 1 --runs 1 --warmup 0 --json)
"$headroom" "${run[@]}" --save-output "$folder/one.safetensors" >"$folder/one.json"
mpirun "${mpirun_options[@]}" -n 4 "$headroom" "${run[@]}" --tp 2 --pp 2 \
  --save-output "$folder/all.safetensors" --output "$folder/all.json" </dev/null
run=(measure "$mixture" --phase generate --batch 4 --seq 6 --new-tokens 4 --threads 1 --runs 1
  --warmup 0 --show-tokens --json)
"$headroom" "${run[@]}" --save-output "$folder/one_mixture.safetensors" >"$folder/one_mixture.json"
mpirun "${mpirun_options[@]}" -n 2 "$headroom" "${run[@]}" --dp 2 --ep 2 \
  --save-output "$folder/all_mixture.safetensors" --output "$folder/all_mixture.json" </dev/null
python3 - "$folder" <<'END'
import array
import json
import struct
import sys

folder = sys.argv[1]


def tensors(name):
    with open(f"{folder}/{name}.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["shape"], array.array("f", data[slice(*entry["data_offsets"])]))
            for name, entry in header.items()}


def require_equal(model):
    one, all_ranks = tensors(f"one{model}"), tensors(f"all{model}")
    assert one.keys() == all_ranks.keys(), one.keys() ^ all_ranks.keys()
    for name, (shape, values) in one.items():
        other_shape, others = all_ranks[name]
        assert shape == other_shape, name
        largest = max(map(abs, values))
        error = max(abs(a - b) for a, b in zip(values, others))
        assert error <= 2e-5 + 2e-5 * largest, (name, error)
    print(len(one), "tensors equal")


require_equal("")
require_equal("_mixture")
report = json.load(open(f"{folder}/all.json"))
ranks = report["processes"]["ranks"]
assert [rank["rank"] for rank in ranks] == [0, 1, 2, 3]
assert [rank["stage"] for rank in ranks] == [0, 0, 1, 1]
assert all(rank["time_s"] >= rank["communication_s"] > 0 for rank in ranks)
single = json.load(open(f"{folder}/one.json"))
# Every FLOP of one process is one of a rank.
assert sum(rank["matrix_flops"] for rank in ranks) >= single["counted"]["matrix_flops"]
single, report = (json.load(open(f"{folder}/{name}_mixture.json")) for name in ("one", "all"))
assert single["generated_ids"] == report["generated_ids"] and len(report["generated_ids"]) == 4
ranks = report["processes"]["ranks"]
assert [rank["data_rank"] for rank in ranks] == [0, 1]
# Replicas share the batch, and every selection runs once: no FLOP is made twice.
assert sum(rank["matrix_flops"] for rank in ranks) == single["counted"]["matrix_flops"]
END
