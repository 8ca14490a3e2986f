"""csv_tables.py HEADROOM: the CSV of every command is one table of equally long rows.

Each command below is run with `--format csv`: a header, at least one row unless the answer is no,
and as many fields in every row as the header has.
"""

import csv
import io
import subprocess
import sys

COMMANDS = """
analyze bert-tiny
analyze bert-tiny gpt2 --batch 1,2
analyze gpt2 --machine h100-80gb --new-tokens 16
analyze gpt2 --detail
explain gpt2
explain gpt2 --what activations --phase train
explain llama-3-8b --what kv --kv-policy vllm
explain gpt2 --steps
explain gpt2 --crossovers
explain gpt2 --what params --claim 163009536
diff llama-2-7b llama-3-8b
fit gpt2
fit gpt2 --machine h100-80gb
fit llama-3-70b --machine h100-80gb
fit gpt-oss-120b --machine rtx-4090 --host-memory 96GiB
fit llama-3-8b --machine a100-80gb --count 8 --phase train --zero 3 --batch 32
plan llama-3-8b --machine a100-80gb --count 2
plan llama-3-70b --machine rtx-4090
serve llama-3-8b --machine h100-80gb --rate 2
train-time llama-3-8b --machine h100-80gb --count 8 --tokens 1B
sweep gpt2 --batch 1,2
complexity layer-self-attention layer-rnn
machines
machines show h100-80gb
presets
presets show gpt2
presets types
"""


def problem_of(text, status):
    rows = list(csv.reader(io.StringIO(text)))
    if len(rows) < (1 if status == 1 else 2):
        return f"{len(rows)} rows"
    widths = {len(row) for row in rows}
    return f"rows of {sorted(widths)} fields" if len(widths) > 1 else ""


def main():
    failed = 0
    for command in COMMANDS.strip().splitlines():
        run = subprocess.run([sys.argv[1], *command.split(), "--format", "csv"],
                             capture_output=True, text=True)
        problem = problem_of(run.stdout, run.returncode) if run.returncode < 2 else run.stderr
        if problem:
            print(f"{command}: {problem}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
