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
# Whole experts on all ranks of 2 replicas of 2 tensor ranks; no reference model has 4 or 8 experts.
mkdir "$folder/mixtral"
cat >"$folder/mixtral/config.json" <<'END'
{"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 64,
 "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 160,
 "max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
 "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": null}
END
run=(measure "$folder/mixtral" --phase generate --batch 4 --seq 6 --new-tokens 4 --threads 1 --runs 1
  --warmup 0 --show-tokens --json)
"$headroom" "${run[@]}" --save-output "$folder/one_whole.safetensors" >"$folder/one_whole.json"
mpirun "${mpirun_options[@]}" -n 4 "$headroom" "${run[@]}" --tp 2 --sp --dp 2 --ep 4 --etp 1 \
  --save-output "$folder/all_whole.safetensors" --output "$folder/all_whole.json" </dev/null
# Weights in groups of files, and in random blocks, are those of one process.
for quantised in gptq_int4 mxfp4; do
  run=(measure "$(dirname "$0")/../data/quantized/$quantised" --seq 6 --threads 1 --runs 1 --warmup 0 --json)
  "$headroom" "${run[@]}" --save-output "$folder/one_$quantised.safetensors" >"$folder/one_$quantised.json"
  mpirun "${mpirun_options[@]}" -n 2 "$headroom" "${run[@]}" --tp 2 \
    --save-output "$folder/all_$quantised.safetensors" --output "$folder/all_$quantised.json" </dev/null
done
run=(measure pythia-14m --weights q8_0 --seq 6 --threads 1 --runs 1 --warmup 0 --json)
"$headroom" "${run[@]}" --save-output "$folder/one_blocks.safetensors" >"$folder/one_blocks.json"
mpirun "${mpirun_options[@]}" -n 4 "$headroom" "${run[@]}" --tp 2 --pp 2 \
  --save-output "$folder/all_blocks.safetensors" --output "$folder/all_blocks.json" </dev/null
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


def require_equal(model, names=None):
    one, all_ranks = tensors(f"one{model}"), tensors(f"all{model}")
    names = names or one.keys()
    assert all_ranks.keys() == set(names), all_ranks.keys() ^ set(names)
    for name in names:
        (shape, values), (other_shape, others) = one[name], all_ranks[name]
        assert shape == other_shape, name
        largest = max(map(abs, values))
        error = max(abs(a - b) for a, b in zip(values, others))
        assert error <= 2e-5 + 2e-5 * largest, (name, error)
    print(len(names), "tensors equal")


def formats(name):
    return {form["stored"]: form["held"] for form in json.load(open(f"{folder}/{name}.json"))["weight_formats"]}


require_equal("")
for quantised in ("_gptq_int4", "_mxfp4"):
    require_equal(quantised)
    assert formats(f"all{quantised}") == formats(f"one{quantised}"), formats(f"all{quantised}")
require_equal("_blocks")
assert formats("all_blocks")["Q8_0"] == "Q8_0"
require_equal("_mixture")
require_equal("_whole", ["logits", "generated_ids", "generated_logits"])  # states are sharded by tokens
single, report = (json.load(open(f"{folder}/{name}_whole.json")) for name in ("one", "all"))
assert single["generated_ids"] == report["generated_ids"] and len(report["generated_ids"]) == 4
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
