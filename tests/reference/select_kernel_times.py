#!/usr/bin/env python3
"""Selects tests/data/kernels from the measured kernel times of a public repository.

usage: select_kernel_times.py CLONE OUTPUT

CLONE: a clone of github.com/ai-dynamo/aiconfigurator (Apache-2.0), whose tables hold the times of single kernels of vLLM,
SGLang and TensorRT-LLM, in CUDA graphs, on idle devices. Of each engine its latest version counts, and of the engines the
fastest: what the device can do, not what one library does. Needs pandas and pyarrow.
"""

import io
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd

TABLES = "aic-core/src/aiconfigurator_core/systems/data"
MACHINES = {
    "a100_sxm": "a100-80gb",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "gb200": "gb200",
    "h100_sxm": "h100-80gb",
    "h200_sxm": "h200-141gb",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-blackwell",
}
TYPES = {"bfloat16": "bfloat16", "fp8": "float8"}
# Weights of linear layers of models from 1 to 400 billion parameters, as [out_features, in_features].
WEIGHTS = [(1024, 4096), (2048, 7168), (4096, 4096), (4096, 12288), (6144, 4096), (8192, 8192), (10240, 8192),
           (16384, 5120)]
ROWS = [1, 8, 32, 128, 512, 2048, 8192]
# Query and key-value heads of Llama 8B, and of Llama 70B on one of eight devices.
HEADS = [(32, 8), (8, 1)]
BATCHES = [1, 8, 64]
CONTEXTS = [256, 1024, 4096, 16384]
RANKS = [2, 4, 8]
MEGABYTE = 2**20


class Tables:
    """The tables at the head of a clone."""

    def __init__(self, clone):
        self.clone = clone

    def git(self, *words):
        return subprocess.run(["git", "-C", self.clone, *words], capture_output=True, check=True).stdout

    def latest(self, system, operation, file):
        """Rows of the latest version of each engine, with the engine's name in the column `engine`."""
        names = self.git("ls-tree", "-r", "--name-only", "HEAD", f"{TABLES}/{system}/{operation}").decode().split()
        chosen = {}
        for name in (name for name in names if name.endswith("/" + file)):
            engine, version = name.split("/")[-3:-1]
            order = [int(number) for number in re.findall(r"\d+", version)]
            if engine not in chosen or order > chosen[engine][0]:
                chosen[engine] = (order, name)
        tables = []
        for engine, (_, name) in sorted(chosen.items()):
            table = pd.read_parquet(io.BytesIO(self.git("show", f"HEAD:{name}")))
            tables.append(table.assign(engine=engine))
        return pd.concat(tables, ignore_index=True)


def fastest(table, keys):
    """The fastest row of each combination of `keys`, with its time in microseconds."""
    rows = table.loc[table.groupby(keys).latency.idxmin(), [*keys, "latency", "engine"]]
    return rows.assign(microseconds=(1000 * rows.latency).round(2)).drop(columns="latency")


def gemms(tables, system):
    table = tables.latest(system, "gemm", "gemm_perf.parquet")
    weights = pd.Series(list(zip(table.n, table.k)), index=table.index)
    table = table[table.gemm_dtype.isin(list(TYPES)) & table.m.isin(ROWS) & weights.isin(WEIGHTS)]
    rows = fastest(table, ["gemm_dtype", "n", "k", "m"])
    rows = rows.assign(gemm_dtype=rows.gemm_dtype.map(TYPES))
    return rows.rename(columns={"gemm_dtype": "type", "m": "rows", "n": "out_features", "k": "in_features"})


def decode_attention(tables, system):
    table = tables.latest(system, "attention", "generation_attention_perf.parquet")
    table = table.assign(keys=table.isl + table.step)
    heads = pd.Series(list(zip(table.num_heads, table.num_key_value_heads)), index=table.index)
    whole = table.get("window_size", pd.Series(0, index=table.index)).fillna(0) == 0
    table = table[(table.head_dim == 128) & table.kv_cache_dtype.isin(["bfloat16", "float16"]) & whole & heads.isin(HEADS)
                  & table.batch_size.isin(BATCHES) & table["keys"].isin(CONTEXTS)]
    rows = fastest(table, ["num_heads", "num_key_value_heads", "batch_size", "keys"])
    return rows.rename(columns={"num_heads": "heads", "num_key_value_heads": "key_value_heads", "batch_size": "batch"})


def all_reduces(tables, system):
    table = tables.latest(system, "comm", "custom_allreduce_perf.parquet")
    eager = table.get("backend", pd.Series("", index=table.index)).fillna("").str.contains("eager")
    # `message_size` counts values of two bytes.
    table = table[~eager & table.num_gpus.isin(RANKS)].assign(bytes=2 * table.message_size)
    table = table[table.bytes.isin([2**10, 2**14, 2**17, MEGABYTE, 8 * MEGABYTE, 64 * MEGABYTE, 512 * MEGABYTE])]
    return fastest(table, ["num_gpus", "bytes"]).rename(columns={"num_gpus": "ranks"})


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tables, folder = Tables(sys.argv[1]), Path(sys.argv[2])
    for name, select in (("gemms", gemms), ("decode_attention", decode_attention), ("all_reduces", all_reduces)):
        rows = []
        for system, machine in MACHINES.items():
            try:
                selected = select(tables, system)
            except ValueError:  # no table
                print(f"{name}: {machine} has no table")
                continue
            selected.insert(0, "machine", machine)
            rows.append(selected)
        table = pd.concat(rows, ignore_index=True)
        table = table[[column for column in table.columns if column not in ("microseconds", "engine")]
                      + ["microseconds", "engine"]]
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
        print(f"{name}: {len(table)} rows")


if __name__ == "__main__":
    main()
