"""Files from outside: hostile, changing, absent, or no files at all."""

import json
import os
import signal
import struct
import time

GPT_NEO = {"model_type": "gpt_neo", "hidden_size": 64, "num_heads": 4, "num_layers": 2, "vocab_size": 100,
           "max_position_embeddings": 64}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 2, "n_positions": 64, "vocab_size": 128}


def write_config(faults, config, name="config.json"):
    (faults.cwd / name).write_text(json.dumps(config))


def short_texts_do_not_grow(faults):
    pattern = [["global"] * 1000, 100000]
    for count in (1, 100):
        write_config(faults, {**GPT_NEO, "attention_types": [pattern] * count})
        faults.refused(["analyze", "config.json"], 2, "attention_types", "100000", timeout=5)
    write_config(faults, {**GPT_NEO, "num_layers": 100000, "attention_types": [[["global", "local"], 50000]]})
    start = time.monotonic()
    done = faults.run("analyze", "config.json", "-f", "json", timeout=30)
    faults.check(done.status == 0, f"100,000 layers exit with {done.status}: {done.err}")
    faults.check(time.monotonic() - start < 10, f"100,000 layers take {time.monotonic() - start:.1f} s")
    write_config(faults, {**GPT2, **{f"k{number}": 1 for number in range(100000)}})
    faults.refused(["analyze", "config.json"], 2, "more than 1000 unknown keys", timeout=10)
    write_config(faults, {**GPT2, "model_type": "q" * 100_000})
    done = faults.run("analyze", "config.json", timeout=30)
    faults.check(done.status == 2 and len(done.err) < 10000, f"a long word is quoted in {len(done.err)} characters")
    (faults.cwd / "deep.json").write_text("[" * 100000)
    faults.refused(["analyze", "deep.json"], 2, "nested deeper", timeout=10)


def grids_are_limited(faults):
    faults.refused(["sweep", "gpt2", "--batch", "1..1099511627776"], 2, "more than 1000000 values", timeout=10)
    # The number of rows exceeds 2^127.
    grid = [word for axis in ("--batch", "--seq", "--past", "--enc-seq") for word in (axis, "1..1000000")]
    for arguments in (["gpt2", *grid[:4]], ["t5-small", *grid]):
        faults.refused(["sweep", *arguments, "-o", "rows.csv"], 2, "rows, more than", timeout=10)
    faults.check(faults.files() == [], f"leaves {faults.files()}")


def control_characters_are_shown(faults):
    folder = faults.cwd / "a\x1b]0;title\x07b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**GPT2, "k\x1b[31mey\u009b\u202e": 1}))
    for arguments in (["analyze", folder.name], ["analyze", folder.name, "-f", "markdown"],
                      ["analyze", folder.name, "-f", "csv"], ["analyze", folder.name, "--strict"],
                      ["analyze", folder.name + "x/config.json"]):
        done = faults.run(*arguments)
        text = done.out + done.err
        raw = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"]
        faults.check(raw == [], f"{arguments[1:]} prints {raw}")
        faults.check("\\x1b" in text, f"{arguments[1:]} hides the character: {text[:200]}")


def tiny_weights(faults):
    """A folder with a config and random weights of a few MB."""
    config = {**GPT2, "n_embd": 256, "n_layer": 4, "vocab_size": 8192}
    folder = faults.cwd / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    width, layers = config["n_embd"], config["n_layer"]
    shapes = {"wte.weight": [config["vocab_size"], width], "wpe.weight": [config["n_positions"], width],
              "ln_f.weight": [width], "ln_f.bias": [width]}
    for layer in range(layers):
        for name, shape in {"ln_1.weight": [width], "ln_1.bias": [width], "ln_2.weight": [width],
                            "ln_2.bias": [width], "attn.c_attn.weight": [width, 3 * width],
                            "attn.c_attn.bias": [3 * width], "attn.c_proj.weight": [width, width],
                            "attn.c_proj.bias": [width], "mlp.c_fc.weight": [width, 4 * width],
                            "mlp.c_fc.bias": [4 * width], "mlp.c_proj.weight": [4 * width, width],
                            "mlp.c_proj.bias": [width]}.items():
            shapes[f"h.{layer}.{name}"] = shape
    header, at = {}, 0
    for name, shape in sorted(shapes.items()):
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return folder / "model.safetensors"


def truncated_while_mapped(faults):
    weights = tiny_weights(faults)
    faults.check(faults.run("measure", "model", "--runs", "1").status == 0, "the whole model does not run")
    whole = weights.read_bytes()
    refused = 0
    for delay in (0.01, 0.02, 0.03, 0.05, 0.08, 0.12):
        weights.write_bytes(whole)
        process = faults.start("measure", "model", "--runs", "1")
        time.sleep(delay)
        os.truncate(weights, 8192)
        out, err = process.communicate(timeout=120)
        faults.check(process.returncode in (0, 2, 3), f"ends with {process.returncode}: {err.decode()}")
        if process.returncode in (2, 3):
            refused += 1
            faults.check("model.safetensors" in err.decode(), f"does not name the file: {err.decode()}")
    faults.check(refused > 0, "no truncation was seen")


def pipes_and_standard_input(faults):
    write_config(faults, GPT2)
    expected = faults.run("analyze", "config.json", "-f", "csv").out
    faults.check(expected != "", "the config does not read")
    for script in ('"$H" analyze - -f csv <config.json', '"$H" analyze /dev/stdin -f csv <config.json',
                   'cat config.json | "$H" analyze - -f csv', 'cat config.json | "$H" analyze /dev/stdin -f csv',
                   'mkfifo pipe; cat config.json >pipe & "$H" analyze pipe -f csv',
                   '"$H" analyze <(cat config.json) -f csv'):
        done = faults.shell(script, timeout=20)
        faults.check(done.status == 0 and done.out == expected, f"{script}: {done.status} {done.err}")
    faults.shell('"$H" measure layer-self-attention --runs 2 -f json -o run.json')
    done = faults.shell('cat run.json | "$H" compare layer-self-attention --machine h100-80gb --import -')
    faults.check(done.status in (0, 1), f"a report from a pipe: {done.status} {done.err}")
    done = faults.shell('mkfifo out; cat out >copy & "$H" analyze gpt2 -o out; wait; test -s copy')
    faults.check(done.status == 0, f"a report into a pipe: {done.err}")


def missing_files_have_one_status(faults):
    for arguments in (
        ["analyze", "./missing"],
        ["analyze", "missing/config.json"],
        ["analyze", "missing.gguf"],
        ["inspect", "./missing.safetensors"],
        ["compare", "missing.json", "other.json"],
        ["compare", "gpt2", "--import", "missing.json", "--machine", "h100-80gb"],
        ["measure", "gpt2", "--input", "missing.json"],
        ["measure", "gpt2", "--checkpoint", "missing"],
    ):
        faults.refused(arguments, 3, "missing", timeout=30)


def odd_paths(faults):
    faults.refused(["analyze", "gpt2", "--machine", "m" * 300], 2, "there is no machine")
    faults.refused(["analyze", "x" * 300], 2, "is not a preset")
    (faults.cwd / "config.json").mkdir()
    faults.refused(["analyze", "config.json"], 3, "config.json")
    done = faults.shell('mkdir gone; cd gone; rmdir ../gone; "$H" analyze config.json')
    faults.check(done.status in (2, 3) and "bug" not in done.err, f"deleted folder: {done.status} {done.err}")
    done = faults.shell('mkdir gone; cd gone; rmdir ../gone; "$H" analyze gpt2')
    faults.check(done.status == 0, f"a preset in a deleted folder: {done.status} {done.err}")


def mistyped_inputs_are_refused(faults):
    (faults.cwd / "inputs.json").write_text('{"inputs_ids": [1, 2, 3]}')
    faults.refused(["measure", "gpt2", "--input", "inputs.json"], 2, "inputs_ids", "did you mean input_ids")
    (faults.cwd / "inputs.json").write_text('{"input_ids": [1], "generate": {"prompt_ids": [1], "max_tokens": 4}}')
    faults.refused(["measure", "gpt2", "--input", "inputs.json"], 2, "/generate/max_tokens")


def padding_that_a_cache_would_show_is_refused(faults):
    inputs = {"input_ids": [[1, 2, 3], [4, 5, 6]], "attention_mask": [[1, 1, 1], [0, 1, 1]]}
    (faults.cwd / "inputs.json").write_text(json.dumps(inputs))
    write_config(faults, {**GPT2, "architectures": ["GPT2LMHeadModel"]})
    measure = ["measure", "config.json", "--input", "inputs.json", "--runs", "1"]
    faults.refused(measure, 2, "attention_mask", "sequence 1")
    inputs["attention_mask"] = [[1, 1, 1], [1, 1, 0]]
    (faults.cwd / "inputs.json").write_text(json.dumps(inputs))
    done = faults.run(*measure)
    faults.check(done.status == 0, f"padding at the end: {done.status} {done.err}")


def signals_end_waiting_commands(faults):
    os.mkfifo(faults.cwd / "config.json")
    process = faults.start("analyze", "config.json", "-o", "report.txt")
    done = faults.interrupt(process, signal.SIGTERM, after=0.5)
    faults.check(done.status == -signal.SIGTERM, f"exits with {done.status}")
    faults.check(faults.files() == ["config.json"], f"leaves {faults.files()}")


ROWS = [
    short_texts_do_not_grow,
    grids_are_limited,
    control_characters_are_shown,
    truncated_while_mapped,
    pipes_and_standard_input,
    missing_files_have_one_status,
    odd_paths,
    mistyped_inputs_are_refused,
    padding_that_a_cache_would_show_is_refused,
    signals_end_waiting_commands,
]
