"""Runs headroom on model folders and checks its outputs and parameter count: compare.py HEADROOM
FOLDER..."""
import json
import subprocess
import sys
import tempfile

import torch
from folders import largest_excess, read_folder
from weights import read_safetensors

BUFFERS = (
    "e_score_correction_bias",
    "moe.router.expert_bias",
    "gate.expert_bias",
    "final_logits_bias",
    "ffn.gate.bias",
    "tid2eid",
)


def is_parameter(name):
    """Laguna's class registers the bias, which its files name after the experts, as a parameter."""
    return not name.endswith(BUFFERS) or name.endswith("experts.e_score_correction_bias")


def measured(program, path, attention):
    with tempfile.TemporaryDirectory() as scratch:
        output = f"{scratch}/out.safetensors"
        command = [
            program,
            "measure",
            path,
            "--input",
            f"{path}/inputs.json",
            "--save-output",
            output,
            "--attention",
            attention,
            "--runs",
            "1",
            "--warmup",
            "0",
            "-q",
            "--format",
            "json",
            "-o",
            f"{scratch}/report.json",
        ]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return None, run.stderr.strip()
        return read_safetensors(output), ""


def parameters(program, path):
    run = subprocess.run(
        [program, "analyze", path, "-q", "--format", "json"], capture_output=True, text=True
    )
    return (
        json.loads(run.stdout)["parameters"]["total"] if run.returncode == 0 else run.stderr.strip()
    )


def check(program, path, attention):
    config, inputs, weights, expected = read_folder(path)
    got, error = measured(program, path, attention)
    if got is None:
        return error
    mask = torch.tensor(inputs["attention_mask"]).bool() if "attention_mask" in inputs else None
    wrong = []
    for name, values in expected.items():
        if name not in got:
            wrong.append(f"{name} is missing")
        elif got[name].shape != values.shape:
            wrong.append(f"{name} is {list(got[name].shape)} for {list(values.shape)}")
        elif name == "generate.ids":
            wrong += [] if torch.equal(got[name], values) else ["tokens differ"]
        else:
            padded = (
                mask is not None
                and values.shape[:2] == mask.shape
                and not name.startswith("decoder")
            )
            excess = largest_excess(got[name], values, mask if padded else None)
            wrong += [f"{name} {excess:.1f}"] if not excess <= 1 else []
    return ", ".join(sorted(wrong))


failed = 0
for folder in sys.argv[2:]:
    stored = read_safetensors(f"{folder}/model.safetensors")
    own = sum(t.numel() for name, t in stored.items() if is_parameter(name))
    counted = parameters(sys.argv[1], folder)
    problems = [
        f"{attention}: {text}"
        for attention in ("eager", "fused")
        if (text := check(sys.argv[1], folder, attention))
    ]
    problems += [f"parameters {counted} for {own}"] if counted != own else []
    failed += bool(problems)
    print("FAIL" if problems else "ok  ", folder.split("/")[-1], *problems, sep="  ")
sys.exit(1 if failed else 0)
