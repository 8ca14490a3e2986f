"""Most likely tokens of headroom and llama.cpp on one GGUF file.

llama.cpp continues a prompt with its most likely token, step by step; headroom reads the prompt and all of
these tokens at once, so that both choose behind the same tokens at every step, whatever they chose before.
"""
import array
import json
import struct
import tempfile
from pathlib import Path

from compare import run_json
from speed_report import row, table

PROMPT = 16
STEPS = 32


def prompt_of(vocab_size):
    """Fixed token ids."""
    ids, token = [], 0
    for _ in range(PROMPT):
        token = (token * 31 + 7) % vocab_size
        ids.append(token)
    return ids


def equal(some, others):
    return sum(a == b for a, b in zip(some, others, strict=True))


def logits_in(file):
    """Rows of logits of one sequence in a safetensors file."""
    with open(file, "rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(length))
        entry = header["logits"]
        begin, end = entry["data_offsets"]
        opened.seek(8 + length + begin)
        values = array.array("f", opened.read(end - begin))
    vocab_size = entry["shape"][-1]
    return [values[at:at + vocab_size] for at in range(0, len(values), vocab_size)]


def chosen_by_headroom(arguments, path, options, tokens):
    """The most likely token behind every token, from the last one of the prompt on."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.safetensors"
        run_json([arguments.headroom, "measure", path, *options, "--token-ids", ",".join(map(str, tokens)),
                  "--logits", "all", "--runs", 1, "--warmup", 0, "--save-output", out, "--format", "json", "-q"], 0)
        return [max(range(len(row)), key=row.__getitem__) for row in logits_in(out)[PROMPT - 1:]]


def compare_tokens(arguments, program, path, options, vocab_size):
    """Numbers of equal tokens, and llama.cpp's margins where they differ."""
    prompt = prompt_of(vocab_size)
    theirs, _ = run_json([program, "continue", path, max(arguments.threads), STEPS, *prompt], 0)
    tokens = [choice["token"] for choice in theirs]
    ours = chosen_by_headroom(arguments, path, options, prompt + tokens[:-1])
    stored = options[:options.index("--activations")] if "--activations" in options else options
    exact = chosen_by_headroom(arguments, path, [*stored, "--activations", "float32"], prompt + tokens[:-1])
    different = [choice["margin"] for choice, own in zip(theirs, ours, strict=True) if choice["token"] != own]
    margins = sorted(choice["margin"] for choice in theirs)
    return {"steps": STEPS, "equal": STEPS - len(different),
            "headroom_equal_to_float32": equal(ours, exact), "llama_cpp_equal_to_float32": equal(tokens, exact),
            "median_margin": margins[STEPS // 2], "largest_margin_of_different": max(different, default=None)}


def greedy_section(cases):
    """Lines of the report."""
    if not cases:
        return []
    rows = []
    for case in cases:
        different = case["largest_margin_of_different"]
        rows.append(row([case["model"], case["type"], str(case["equal"]), str(case["headroom_equal_to_float32"]),
                         str(case["llama_cpp_equal_to_float32"]), f"{case['median_margin']:.3f}",
                         "–" if different is None else f"{different:.3f}"]))
    return ["## Most likely tokens", "",
            f"llama.cpp continues a prompt of {PROMPT} tokens by its most likely token, {STEPS} times, and headroom reads the",
            "same tokens: of how many do both choose the same next one? And of how many does each choose that of",
            "float32 activations (`--activations float32`)? The margin is the difference between llama.cpp's two largest",
            "logits, in standard deviations of all; random weights have small ones, where rounding turns the choice.", "",
            *table(["Model", "Type", f"Equal, of {STEPS}", "headroom as float32", "llama.cpp as float32", "Median margin",
                    "Largest margin of a different one"], 2, rows), ""]
