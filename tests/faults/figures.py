"""Numbers at the edge of their types: figures are exact, or refused; none is negative, infinite or not a number."""

import json
import re

from files import GPT2, write_config

MOST = str(2**63 - 1)
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
         "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 64, "hidden_act": "silu",
         "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
ON_A_MACHINE = ["--machine", "h100-80gb"]


def steps_of_a_generation_never_wrap(faults):
    long_past = ["--past", MOST]
    for arguments in (["analyze", "llama-3-8b", *long_past, "--new-tokens", "2"],
                      ["analyze", "llama-3-8b", *ON_A_MACHINE, *long_past, "--new-tokens", "8"],
                      ["explain", "gpt2", "--what", "kv", *long_past, "--new-tokens", "3"],
                      ["analyze", "mistral-7b", "--phase", "decode", *long_past, "--kv-policy", "hf-static"]):
        faults.refused(arguments, 2, "larger than 2^63 - 1", timeout=10)
    # The last step of this one has 2^63 - 1 tokens in its cache.
    done = faults.run("analyze", "llama-3-8b", "--past", str(2**63 - 128), "--seq", "127", "--new-tokens", "2", "-f", "json")
    bytes_per_token = 2 * 32 * 8 * 128 * 2  # keys and values of 32 layers and 8 heads of 128, in bfloat16
    faults.check(json.loads(done.out)["generation"]["kv_cache_used_bytes"] == bytes_per_token * 2**63,
                 f"the longest generation has another cache: {done.err}")


def fractions_of_configs_give_sizes(faults):
    for fraction in (1e300, -1e300, -1, 2**62):
        rope = {**LLAMA["rope_parameters"], "partial_rotary_factor": fraction}
        write_config(faults, {**LLAMA, "rope_parameters": rope})
        faults.refused(["analyze", "config.json"], 2, "partial_rotary_factor", timeout=10)
    for fraction in (1e300, -1):
        write_config(faults, {"model_type": "dinov2", "mlp_ratio": fraction})
        faults.refused(["analyze", "config.json"], 2, "mlp_ratio", timeout=10)
        write_config(faults, {"model_type": "mamba", "expand": fraction, "vocab_size": 100, "hidden_size": 64})
        faults.refused(["analyze", "config.json"], 2, "expand", timeout=10)
    for size in (2**56 + 1, 2**63 - 1, 2**63, 10**30):
        write_config(faults, {**GPT2, "n_inner": size})
        faults.refused(["analyze", "config.json"], 2, "n_inner", timeout=10)
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "gpt2", "r": 2**56, "target_modules": ["c_attn"]}
    (faults.cwd / "adapter").mkdir()
    (faults.cwd / "adapter" / "adapter_config.json").write_text(json.dumps(adapter))
    done = faults.run("analyze", "adapter")
    more = 2**56 * (768 + 3 * 768) * 12 * 4  # rows and columns of 12 layers, in float32
    faults.check(done.status == 0 and f"{more} B more" in done.err, f"an adapter of rank 2^56: {done.err}")


def rates_are_above_0(faults):
    for command in (["fit", "gpt2", "--phase", "train", "--count", "4", "--dp", "4"],
                    ["plan", "gpt2", "--train", "--count", "4", "--dp", "4"],
                    ["train-time", "gpt2", "--tokens", "1B", "--batch", "8", "--count", "4", "--dp", "4"]):
        for option in ("--memory", "--intra-node-bandwidth", "--inter-node-bandwidth"):
            for none in ("0", "-0", "0GB", "0.0001kB"):
                faults.refused([*command, *ON_A_MACHINE, option, none], 2, option, timeout=10)
    split = ["fit", "gpt2", *ON_A_MACHINE, "--host-memory", "64GiB"]
    for option in ("--host-bandwidth", "--host-link"):
        faults.refused([*split, option, "0"], 2, option, timeout=10)


def training_budgets_stay_finite(faults):
    command = ["train-time", "gpt2", "--batch", "8", "--count", "4", "--dp", "4", *ON_A_MACHINE]
    for option in ("--availability", "--price", "--power"):
        for value in ("1e-300", "5e-324", "1e308", "nan", "inf", "-1", "0"):
            faults.refused([*command, "--tokens", "1B", option, value], 2, option, timeout=10)
    done = faults.run(*command, "--tokens", "1e18", "--availability", "1e-18", "--price", "1e18")
    faults.check(done.status == 0 and not re.search(r"(?<!\w)[-−]\d|\binf\b|\bnan\b", done.out),
                 f"the largest budget: {done.out} {done.err}")


def requests_arrive_within_30_years(faults):
    serve = ["serve", "llama-3-8b", *ON_A_MACHINE]
    faults.refused([*serve, "--rate", "1e-18", "--requests", "3"], 2, "arrive over", timeout=10)
    line = '{"arrival_s": %s, "input_tokens": 10, "output_tokens": 20}\n'
    (faults.cwd / "trace.jsonl").write_text(line % 0 + line % 1e300)
    faults.refused([*serve, "--trace", "trace.jsonl"], 2, "arrive over", timeout=10)
    # Only differences of times count: the clock may start anywhere.
    figures = []
    for first in (0, 2**60):
        (faults.cwd / "trace.jsonl").write_text(line % first + line % (first + 4096))
        done = faults.run(*serve, "--trace", "trace.jsonl", "-f", "json", timeout=10)
        faults.check(done.status == 0, f"arrivals from {first} s: {done.status} {done.err}")
        figures.append(json.loads(done.out)["plans"] if done.status == 0 else first)
    faults.check(figures[0] == figures[1], "a later clock changes the figures")


def mistyped_machines_are_refused(faults):
    machine = json.loads(faults.run("machines", "show", "h100-80gb", "-f", "json").out)

    def refused(where, **more):
        (faults.cwd / "machine.json").write_text(json.dumps({**machine, **more}))
        faults.refused(["fit", "gpt2", "--machine", "machine.json"], 2, where, timeout=10)

    refused('unknown key "memory_bytes_per_ss"', memory_bytes_per_ss=1e12)
    refused('/memory: unknown key "usabel"', memory={**machine["memory"], "usabel": machine["memory"]["usable"]})
    refused('/context: unknown key "cpus"', context={**machine["context"], "cpus": 8})
    refused("float16_flops_per_s", float16_flops_per_s=-1)
    (faults.cwd / "machine.json").write_text(json.dumps(machine))
    done = faults.run("fit", "gpt2", "--machine", "machine.json")
    faults.check(done.status == 0, f"the machine as shown: {done.err}")


ROWS = [
    steps_of_a_generation_never_wrap,
    fractions_of_configs_give_sizes,
    rates_are_above_0,
    training_budgets_stay_finite,
    requests_arrive_within_30_years,
    mistyped_machines_are_refused,
]
