#!/usr/bin/env python3
"""Checks headroom's JSON output against the schemas in reports/.

usage: validate.py HEADROOM_BINARY REPORTS_FOLDER

Runs the binary for every case below, validates what it prints and the stored samples, and makes
sure that the schemas refuse damaged documents. Exit status: 0 fine, 1 a check failed, 77 skipped
because python3-jsonschema is not there.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from jsonschema import Draft202012Validator
except ImportError as error:
    print(f"skipped: {error}; install python3-jsonschema")
    sys.exit(77)

ATTENTION_LAYER = {
    "model_type": "attention",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "head_dim": 64,
    "value_head_dim": 100,
}

LINEAR_TRANSFORMER = {
    "model_type": "linear_transformer",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "vocab_size": 101,
    "max_position_embeddings": 64,
}

# Each begins with the command, which names its schema. layer.json is ATTENTION_LAYER, linear.json
# is LINEAR_TRANSFORMER.
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
analyze llama-3-8b --phase decode --attention fused --dtype int8
analyze t5-small --enc-seq 512 --seq 64 --detail
analyze t5-small --phase decode --detail
analyze t5-v1_1-small --phase train --detail
analyze transformer-base --phase train --detail
analyze transformer-base --phase decode
analyze vit-base --detail
analyze vit-base --phase train --detail
analyze linear-transformer --detail
analyze linear-transformer --phase decode --detail
analyze linear-transformer --phase train --detail
analyze layer.json --detail
analyze layer.json --phase train --detail
analyze llama-3.1-405b --batch 1000000 --seq 131072
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
explain llama-3.1-405b --batch 1000000 --seq 131072
diff bert-base distilbert
diff llama-2-7b llama-3-8b --seq 4096 --dtype bf16
diff bert-base gpt2 --phase train
diff t5-small gpt2 --phase decode
diff vit-base layer.json
measure bert-tiny --runs 2
measure layer.json --runs 2 --attention fused
measure linear.json --runs 2 --phase generate --seq 5 --new-tokens 3
measure linear.json --runs 2 --phase decode --past 5
analyze gpt2 --dtype bf16 --machine h100-80gb --new-tokens 16
compare predicted.json measured.json --tolerance time=1e9%
machines
machines show a100-80gb
presets list
presets show gpt2
presets show transformer-base
""".strip().splitlines()

LARGE_CASE = "analyze llama-3.1-405b --batch 1000000 --seq 131072"

# One of the cases above for each schema; what they print is damaged in every way that `damaged`
# knows.
DAMAGED_CASES = [
    "analyze bert-base --phase train --detail",
    "explain bert-base",
    "diff bert-base distilbert",
    "analyze gpt2 --dtype bf16 --machine h100-80gb --new-tokens 16",
    "compare predicted.json measured.json --tolerance time=1e9%",
    "machines show a100-80gb",
    "presets show gpt2",
]

failures = 0


def report(name, problem):
    """Prints one line for a check; `problem` is empty when there is none."""
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
    environment = os.environ | {"HOME": folder, "XDG_DATA_HOME": folder}
    command = [binary, *arguments, "--format", "json", "--quiet"]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if result.returncode != 0:
        raise ValueError(f"exit status {result.returncode}: {result.stderr.decode().strip()}")
    return json.loads(result.stdout, parse_constant=refuse_constant)


def wrong(value):
    """Something of another type than a scalar that no schema allows in its place."""
    if isinstance(value, str):
        return 1
    return True if value is None else "1"


def damages(value, path=()):
    """Yields (description, path to an object, change) for every key; of an array, in its first."""
    if isinstance(value, list):
        if value:
            yield from damages(value[0], (*path, 0))
        return
    if not isinstance(value, dict):
        return
    yield "a key too many", path, lambda target: target.update(surplus=1)
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
    """A prediction and a measurement of the same run, for `compare`."""
    prediction = run(binary, ["analyze", "linear.json", "--seq", "9", "--machine", "t4"], folder)
    measurement = run(binary, ["measure", "linear.json", "--seq", "9", "--runs", "3"], folder)
    Path(folder, "predicted.json").write_text(json.dumps(prediction), encoding="utf-8")
    Path(folder, "measured.json").write_text(json.dumps(measurement), encoding="utf-8")


def check_cases(binary, schemas):
    """Validates every case; returns the documents by case."""
    documents = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "layer.json").write_text(json.dumps(ATTENTION_LAYER), encoding="utf-8")
        Path(folder, "linear.json").write_text(json.dumps(LINEAR_TRANSFORMER), encoding="utf-8")
        prepare_comparison(binary, folder)
        for case in CASES:
            arguments = case.split()
            try:
                documents[case] = run(binary, arguments, folder)
                problem = first_problem(schemas[arguments[0]], documents[case])
            except ValueError as error:
                problem = str(error)
            report(case, problem)
    return documents


def check_large_integers(document):
    matrix = document["flops"]["forward"]["matrix"]
    exact = isinstance(matrix, int) and matrix > 2**64
    report("FLOPs beyond 2^64 are exact integers", "" if exact else f"{matrix!r} is none")


def check_damaged(schema, case, document):
    refused = 0
    accepted = []
    for description, bad in damaged(document):
        if first_problem(schema, bad):
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
    report("definitions of one name are the same in every schema", ", ".join(sorted(differing)))


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
            check_damaged(schemas[case.split()[0]], case, documents[case])
    check_shared_definitions(schemas)
    check_samples(schemas, reports / "samples")
    print(f"{failures} failed" if failures else "all passed")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
