#!/usr/bin/env python3
"""Checks headroom's JSON output against the schemas in reports/.

usage: validate.py HEADROOM_BINARY REPORTS_FOLDER

Runs the binary for every case below, validates its output and the stored samples, and checks that
the schemas refuse damaged documents. Exit status: 0 all passed, 1 a check failed, 77 skipped because
python3-jsonschema is missing.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import input_files

try:
    from jsonschema import Draft202012Validator
except ImportError as error:
    print(f"skipped: {error}; install python3-jsonschema")
    sys.exit(77)

# Each begins with the command, which determines its schema; SCHEMAS has the exceptions. input_files.py writes the files
# that they name.
CASES = """
analyze bert-base
analyze bert-base --detail
analyze bert-base --phase train --detail
analyze bert-base-uncased-pretraining --phase train --dtype fp16 --attention fused --detail
analyze gpt2
analyze gpt2 --seq 4096 --attention fused --detail
analyze gpt2 --phase decode --past 1023 --batch 16 --detail
analyze gpt2 --phase train --dtype bf16 --recompute selective --kernels fused --detail
analyze gpt2 --phase train --recompute full
analyze gpt2 --convention torch
analyze gpt2 --convention fvcore --attention fused --detail
analyze gpt2 --convention megatron
analyze gpt2 --convention palm --phase train
analyze llama-3-8b --dtype bf16 --kv-dtype fp8 --detail
analyze llama-3-8b --logits last
analyze gpt-oss-20b --phase decode --past 4095 --dtype bf16 --kv-dtype int4 --kv-scales group --kv-policy vllm
explain gpt-oss-20b --what kv --phase decode --past 4095 --dtype bf16 --kv-dtype q8_0 --kv-policy llama.cpp
analyze llama-3-8b --phase decode --attention fused --recipe w8a8
analyze t5-small --enc-seq 512 --seq 64 --detail
analyze t5-small --phase decode --detail
analyze t5-v1_1-small --phase train --detail
analyze transformer-base --phase train --detail
analyze transformer-base --phase decode
analyze vit-base --detail
analyze vit-base --phase train --detail
analyze linear-transformer --detail
analyze linear-transformer --phase decode --detail
analyze layer-rnn --detail
analyze layer-lstm --phase decode --detail
analyze layer-gru --phase train --detail
analyze layer-conv --detail
analyze layer-conv-dilated --phase decode --detail
analyze layer-cross-attention --enc-seq 64 --detail
analyze layer-ffn --phase train
analyze linear-transformer --phase train --detail
analyze layer.json --detail
analyze layer.json --phase train --detail
analyze llama-3.1-405b --batch 1000000 --seq 131072
analyze gemma-2-9b-it
analyze flux.1-schnell --image-size 512 --detail
analyze wan2.1-t2v-1.3b --frames 5 --phase train
analyze voxtral.json --audio 2 --audio-seconds 5 --detail
analyze acme/tiny
explain bert-base
explain bert-base --what params
explain bert-base --what activations
explain gpt2 --phase train --what activations --dtype bf16
explain gpt2 --phase train --what activations --recompute selective
explain gpt2 --phase train --what activations --recompute full
explain llama-3-8b --what kv --seq 8192 --dtype bf16
explain t5-small --what flops
explain t5-small --what params
explain t5-small --what kv --phase decode
explain vit-base --what flops
explain linear-transformer --what kv --phase decode
explain layer.json --what flops
explain layer.json --what params
explain layer-gru
explain layer-conv --what params
explain layer-lstm --what kv --phase decode
explain bert-base --what elementwise
explain gpt2 --what training --phase train --recompute full
explain gpt2 --what states --phase train --dtype bf16
explain --claim 163009536 gpt2 --what params
explain --claim 37578559488 qwen3-30b-a3b --phase train --seq 8192
explain --claim 1748992 deepseek-v3 --what kv --dtype bf16 --seq 4096
explain llama-2-7b --what kv --seq 64 --new-tokens 100
explain --crossovers llama-2-7b --machine h100-80gb
explain --crossovers bert-base
explain --steps bert-base
explain --steps layer.json --measured
explain --steps gpt2 --what activations --phase train --dtype bf16
explain --steps deepseek-v3 --what params
explain --steps t5-small --what kv
explain --steps gpt2 --what states --phase train
explain llama-3.1-405b --batch 1000000 --seq 131072
diff bert-base distilbert
diff llama-2-7b llama-3-8b --seq 4096 --dtype bf16
diff bert-base gpt2 --phase train
diff t5-small gpt2 --phase decode
diff vit-base layer.json
measure bert-tiny --runs 2
measure layer.json --runs 2 --attention fused
measure voxtral.json --audio 1 --audio-seconds 1 --runs 2
measure layer-gru --runs 2 --seq 5 --counters
measure layer-conv-dilated --runs 2 --phase decode --past 5
measure layer-cross-attention --runs 2 --enc-seq 9
measure linear.json --runs 2 --phase generate --seq 5 --new-tokens 3 --show-tokens
measure linear.json --runs 2 --phase decode --past 5
analyze gpt2 --dtype bf16 --machine h100-80gb --new-tokens 16
compare predicted.json measured.json --tolerance time=1e9%
compare gpt2 --import llama_bench.json --machine t4
inspect model
inspect broken
inspect model/model.safetensors
inspect alone.safetensors
inspect small.gguf
fit llama-3-8b --machine h100-80gb --seq 8192 --batch 16
fit bert-base-uncased --machine t4 --batch 64 --seq 512
fit vit-base --machine rtx-4090 --dtype float32
fit t5-small --machine l4 --count 2 --tp 2
fit gpt2-xl --machine a100-80gb --count 20 --phase train --tp 5 --pp 2 --batch 8 --optimizer muon
fit llama-3-8b --machine a100-80gb --count 8 --phase train --tp 2 --sp --pp 4 --batch 16 --recompute every=4
fit llama-2-7b --machine rtx-4090 --phase train --adapter qlora --recompute full
fit llama-3.1-405b --machine h100-80gb --count 8 --tp 8 --weights int4
fit llama-3-8b --machine rtx-4090 --weights iq4_xs
fit llama-3-8b --machine h100-80gb --weights 4bit-1x128-s16-zeros
fit deepseek-v3 --machine h800-80gb --count 32 --ep 32 --batch 64 --expert-exchange by-node --two-batch-overlap
fit llama-3-70b --machine h100-80gb
fit llama-3-70b --machine h100-80gb --count auto
fit --machines h100,l4 llama-3-70b --price h100-80gb=2.50
fit --machines l4 bert-base
fit llama-3.1-405b --machine h100-80gb --count 2048 --phase train --tp 8 --sp --pp 16 --interleave 8 --batch 256 --zero 1 --zero-ranks 8
fit deepseek-v3 --machine h100-80gb --count 2048 --phase train --pp 16 --ep 64 --batch 4096 --micro-batch 1 --schedule dual-pipe --offload optimizer
fit llama-3-8b --machine h100-80gb --count 4 --phase train --zero 3 --seq 8192 --batch 4 --cpu-offloading-num-layers 31 --loss-chunks 16
machines show mi300a
train-time llama-3-8b --tokens 1T --machine h100-80gb --count 16 --zero 1 --attention fused
train-time gpt2 --tokens 300B --machine t4 --count 2 --price 0.5 --batch 64 --availability 0.9
plan llama-3-8b --machine a100-80gb --count 16 --train --batch 64
plan llama-3-70b --machine h100-80gb --count 8 --serve --batch 64
plan llama-3.1-405b --machine h100-80gb --count 2 --train --batch 2
system
serve llama-3-8b --machine h100-80gb --rate 5 --requests 20
serve llama-3-8b --machine h100-80gb --users 4 --requests 20 --count 4 --tp 2 --output 1
serve llama-3-70b --machine h100-80gb --rate 2 --requests 20 --ttft 500ms --tpot 30ms --price 3
serve --machines l40s,t4 llama-3-8b --rate 2 --requests 20 --ttft 1s --price l40s=0.80 --most-devices 2
sweep gpt2 --batch 1..4:x2 --seq 8,16 --machine h100-80gb --dtype bf16
sweep t5-small --phase decode --past 7 --batch 2
sweep llama-3.1-405b --phase train --batch 1000000 --seq 131072
complexity layer-self-attention layer-rnn layer-conv-dilated layer-window-attention layer-ffn
complexity layer-self-attention layer-linear-attention-causal --seq 16..64 --measure --runs 1
complexity bert-base --seq 128 --machine h100-80gb
complexity t5-small gpt-oss-20b --seq 8,300
complexity layer-multi-head-attention --study associativity --seq 64,65
complexity gpt2 --study generation --new-tokens 1..8 --prompt 5
complexity gpt2 --study generation --new-tokens 1..8 --machine t4
complexity linear.json --study generation --new-tokens 1,3 --measure --runs 1
complexity llama-3.1-405b --study shares --machine h100-80gb
complexity linear.json --study shares --seq 4,8 --measure --runs 1
calibrate --from runs.jsonl --machine b200
machines
machines h100
machines show a100-80gb
machines show tpu-v5e
machines show pytorch_cpu.json
analyze gpt2 --seq 16 --machine pytorch_cpu.json
models
models --fit --machine rtx-4090
presets list
presets qwen3 --max-parameters 8B --sort parameters
presets show gpt2
presets show flux.1-dev
presets show transformer-base
presets types
analyze unknown
analyze unknown/model.safetensors --detail
analyze unknown-shards
analyze adapter
""".strip().splitlines()

SCHEMAS = {
    "calibrate": "machines",
    "presets types": "model_types",
    "explain --steps": "derivation",
    "explain --claim": "claim",
    "explain --crossovers": "crossovers",
    "fit --machines": "fit_devices",
    "fit --host-memory": "fit_split",
    "serve --machines": "serve_machines",
    "analyze unknown": "unknown_model",
}

LARGE_CASE = "analyze llama-3.1-405b --batch 1000000 --seq 131072"

# One case per schema; `damaged` alters the output in every way it knows.
DAMAGED_CASES = [
    "analyze bert-base --phase train --detail",
    "explain bert-base",
    "explain --steps layer.json --measured",
    "explain --crossovers llama-2-7b --machine h100-80gb",
    "explain --claim 37578559488 qwen3-30b-a3b --phase train --seq 8192",
    "diff bert-base distilbert",
    "analyze gpt2 --dtype bf16 --machine h100-80gb --new-tokens 16",
    "compare predicted.json measured.json --tolerance time=1e9%",
    "inspect broken",
    "inspect model",
    "fit llama-3-8b --machine h100-80gb --seq 8192 --batch 16",
    "fit --machines h100,l4 llama-3-70b --price h100-80gb=2.50",
    "fit --host-memory 96GiB gpt-oss-120b --machine rtx-4090",
    "plan llama-3-8b --machine a100-80gb --count 16 --train --batch 64",
    "serve llama-3-70b --machine h100-80gb --rate 2 --requests 20 --ttft 500ms --tpot 30ms --price 3",
    "serve --machines l40s,t4 llama-3-8b --rate 2 --requests 20 --ttft 1s --price l40s=0.80 --most-devices 2",
    "sweep gpt2 --batch 1..4:x2 --seq 8,16 --machine h100-80gb --dtype bf16",
    "complexity layer-self-attention layer-linear-attention-causal --seq 16..64 --measure --runs 1",
    "complexity gpt2 --study generation --new-tokens 1..8 --prompt 5",
    "complexity linear.json --study shares --seq 4,8 --measure --runs 1",
    "machines show a100-80gb",
    "models",
    "presets show gpt2",
    "presets types",
    "analyze unknown",
]

# Files that people write lack it.
OPTIONAL = {("machines show a100-80gb", "no produced_by in /")}

failures = 0


def report(name, problem):
    """Prints the result of a check; `problem` is empty if it passed."""
    global failures
    failures += bool(problem)
    print(f"FAILED  {name}: {problem}" if problem else f"ok      {name}")


def load_schemas(folder):
    schemas = {}
    for file in sorted(folder.glob("*.schema.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(schema)
        schemas[schema["$id"].removesuffix(".schema.json")] = schema
    return schemas


def first_problem(schema, document):
    errors = sorted(Draft202012Validator(schema).iter_errors(document), key=lambda e: e.json_path)
    return f"{errors[0].json_path}: {errors[0].message}" if errors else ""


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def run(binary, arguments, folder):
    stores = {"HF_HUB_CACHE": f"{folder}/hub", "OLLAMA_MODELS": f"{folder}/ollama"}
    environment = os.environ | stores | {"HOME": folder, "XDG_DATA_HOME": folder}
    written = "jsonl" if arguments[0] == "sweep" else "json"
    command = [binary, *arguments, "--format", written, "--quiet"]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    # A verdict that fails: unexplained tensors, a model that does not fit.
    verdict = arguments[-1] == "broken" or arguments[0] in ("fit", "plan")
    if result.returncode not in ((0, 1) if verdict else (0,)):
        raise ValueError(f"exit status {result.returncode}: {result.stderr.decode().strip()}")
    if written == "json":
        return json.loads(result.stdout, parse_constant=refuse_constant)
    return [json.loads(row, parse_constant=refuse_constant) for row in result.stdout.splitlines()]


def wrong(value):
    """A value of another type, which no schema allows in place of the scalar."""
    if isinstance(value, str):
        return 1
    return True if value is None else "1"


def damages(value, path=()):
    """Yields (description, path to an object, change) for every key; for arrays, in the first
    item."""
    if isinstance(value, list):
        if value:
            yield from damages(value[0], (*path, 0))
        return
    if not isinstance(value, dict):
        return
    yield "a surplus key", path, lambda target: target.update(surplus=1)
    for key, item in value.items():
        yield f"no {key}", path, lambda target, key=key: target.pop(key)
        if not isinstance(item, (dict, list)):
            replacement = {key: wrong(item)}
            yield f"{key} of a wrong type", path, lambda target, new=replacement: target.update(new)
        elif key != "config":  # its keys are the family's
            yield from damages(item, (*path, key))


def damaged(document):
    """Yields (description, damaged copy) for every single damage."""
    for description, path, change in damages(document):
        result = copy.deepcopy(document)
        target = result
        for step in path:
            target = target[step]
        change(target)
        yield f"{description} in /{'/'.join(map(str, path))}", result


def prepare_comparison(binary, folder):
    """A prediction and a measurement of one run, for `compare`."""
    prediction = run(binary, ["analyze", "linear.json", "--seq", "9", "--machine", "t4", "--attention", "eager"],
                     folder)
    measurement = run(binary, ["measure", "linear.json", "--seq", "9", "--runs", "3"], folder)
    Path(folder, "predicted.json").write_text(json.dumps(prediction), encoding="utf-8")
    Path(folder, "measured.json").write_text(json.dumps(measurement), encoding="utf-8")
    runs = [{"avg_ts": 200.0, "n_prompt": 512, "n_gen": 0}, {"avg_ts": 20.0, "n_prompt": 0, "n_gen": 128}]
    Path(folder, "llama_bench.json").write_text(json.dumps(runs), encoding="utf-8")


def schema_of(case):
    """The name of the schema that describes the output of a case."""
    special = [name for start, name in SCHEMAS.items() if case.startswith(start)]
    return special[0] if special else case.split()[0]


def check_cases(binary, schemas):
    """Validates every case and returns the documents by case."""
    documents = {}
    with tempfile.TemporaryDirectory() as folder:
        input_files.write_all(folder)
        prepare_comparison(binary, folder)
        for case in CASES:
            arguments = case.split()
            try:
                output = run(binary, arguments, folder)
                rows = output if arguments[0] == "sweep" else [output]
                # The first row of a sweep has the most keys.
                documents[case] = rows[0]
                problem = "".join(first_problem(schemas[schema_of(case)], row) for row in rows)
            except ValueError as error:
                problem = str(error)
            report(case, problem)
    return documents


def check_large_integers(document):
    matrix = document["flops"]["forward"]["matrix"]
    exact = isinstance(matrix, int) and matrix > 2**64
    report("FLOPs beyond 2^64 are exact integers", "" if exact else f"{matrix!r} is not an integer")


def check_damaged(schema, case, document):
    refused = 0
    accepted = []
    for description, bad in damaged(document):
        if first_problem(schema, bad) or (case, description) in OPTIONAL:
            refused += 1
        else:
            accepted.append(description)
    problem = "accepted: " + ", ".join(accepted) if accepted else ""
    report(f"{refused} damaged documents of `{case}` are refused", problem)


def check_shared_definitions(schemas):
    definitions = {}
    differing = set()
    for schema in schemas.values():
        for name, definition in schema["$defs"].items():
            if definitions.setdefault(name, definition) != definition:
                differing.add(name)
    report("definitions of one name agree in all schemas", ", ".join(sorted(differing)))


def check_samples(schemas, folder):
    for file in sorted(folder.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        problems = {name: first_problem(schema, document) for name, schema in schemas.items()}
        fits = "" in problems.values()
        report(f"sample {file.name}", "" if fits else f"fits no schema: {problems}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    binary = str(Path(sys.argv[1]).resolve())
    reports = Path(sys.argv[2])
    schemas = load_schemas(reports)
    documents = check_cases(binary, schemas)
    if LARGE_CASE in documents:
        check_large_integers(documents[LARGE_CASE])
    for case in DAMAGED_CASES:
        if case in documents:
            check_damaged(schemas[schema_of(case)], case, documents[case])
    check_shared_definitions(schemas)
    check_samples(schemas, reports / "samples")
    print(f"{failures} failed" if failures else "all passed")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
