#!/usr/bin/env python3
"""Measures a device with PyTorch and writes a machine file for `--machine`.

    python3 tests/bench/torch_calibrate.py -o my-gpu.json              # the first of cuda, xpu, mps, cpu
    python3 tests/bench/torch_calibrate.py --device cpu --dtypes float32 -o cpu.json
    torchrun --nproc-per-node 8 tests/bench/torch_calibrate.py -o node.json    # also collectives
    headroom analyze bert-base --batch 8 --machine my-gpu.json

Measures, for each type: GEMMs by shape with weights in and out of cache, attention in prefill and decode,
norms, softmax, activations and embeddings by size, bandwidth by working set, and the host's time of an
operator. reports/machines.schema.json, variant "measured", describes the file. docs/calibrate.md explains it.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import time

import torch_kernels as kernels

SCHEMA_VERSION = 1
POOL_BYTES = 256 << 20  # weights of cold calls: several times a last-level cache
LONGEST_CALL = 0.4  # seconds of a call; larger points are left to extrapolation
KEPT_BYTES = 256 << 20  # of a sample's results
LONGEST_POINT = 0.3  # seconds of all samples of a point, but for one


DTYPES = ["float32", "bfloat16", "float16"]


def types(text):
    names = text.split(",")
    unknown = [name for name in names if name not in DTYPES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(DTYPES)}")
    return names


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="cpu, cuda, cuda:1, mps, xpu; default: the first that exists")
    parser.add_argument("--dtypes", type=types, default=[],
                        help=f"comma-separated, of {', '.join(DTYPES)}; default: those of the device")
    parser.add_argument("--threads", type=int, default=0, help="of the cpu; default: PyTorch's")
    parser.add_argument("--effort", default="full", choices=["full", "quick", "check"],
                        help="quick: every second size of each axis; check: two small ones, to test this program")
    parser.add_argument("--name", help="name of the machine; default: the device's")
    parser.add_argument("-o", "--output", default="-")
    return parser.parse_args()


def import_torch():
    try:
        import torch
    except ImportError as error:
        sys.exit(f"torch_calibrate: {error}; install PyTorch")
    return torch


class Device:
    """A device of PyTorch: its properties, and the time of calls on it."""

    def __init__(self, torch, name):
        self.torch = torch
        self.name = name or self.first_name()
        self.kind = self.name.split(":")[0]
        if self.kind in ("cuda", "xpu"):
            if ":" not in self.name:
                self.name = f"{self.name}:{os.environ.get('LOCAL_RANK', '0')}"
            getattr(torch, self.kind).set_device(self.name)

    def first_name(self):
        torch = self.torch
        if torch.cuda.is_available():
            return "cuda"
        if hasattr(torch, "xpu") and torch.xpu.is_available():
            return "xpu"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    def synchronize(self):
        if self.kind != "cpu":
            getattr(self.torch, self.kind).synchronize()

    def description(self):
        if self.kind in ("cuda", "xpu"):
            return getattr(self.torch, self.kind).get_device_name(self.name)
        for line in open("/proc/cpuinfo", encoding="utf-8") if os.path.exists("/proc/cpuinfo") else ():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
        return platform.processor() or platform.machine()

    def architecture(self):
        """A name of headroom's architectures."""
        if self.kind == "mps":
            return "apple"
        if self.kind != "cuda":
            return "cpu" if self.kind == "cpu" else "other"
        properties = self.torch.cuda.get_device_properties(self.name)
        if self.torch.version.hip:
            return "cdna" if properties.gcnArchName.startswith("gfx9") else "rdna"
        if (properties.major, properties.minor) == (8, 9):
            return "ada"
        if (properties.major, properties.minor) == (7, 5):
            return "turing"
        known = {7: "volta", 8: "ampere", 9: "hopper"}
        return known.get(properties.major, "blackwell" if properties.major >= 10 else "other")

    def memory_bytes(self):
        if self.kind == "cuda":
            return self.torch.cuda.mem_get_info(self.name)[1]
        if self.kind == "xpu":
            return self.torch.xpu.get_device_properties(self.name).total_memory
        if self.kind == "mps":
            return self.torch.mps.recommended_max_memory()
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def cache_bytes(self):
        """Last-level cache; 0 if unknown."""
        if self.kind == "cuda":
            return getattr(self.torch.cuda.get_device_properties(self.name), "L2_cache_size", 0)
        file = "/sys/devices/system/cpu/cpu0/cache/index3/size"
        if self.kind == "cpu" and os.path.exists(file):
            text = open(file, encoding="utf-8").read().strip()
            return int(text.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1)
        return 0

    def dtypes(self):
        torch = self.torch
        wanted = [torch.float32, torch.bfloat16]
        if self.kind != "cpu":
            wanted.append(torch.float16)
        if self.kind == "cuda" and not torch.cuda.is_bf16_supported():
            wanted.remove(torch.bfloat16)
        return wanted


class Clock:
    """Times lists of calls: samples of several calls each, long enough to outlast the clock's noise."""

    def __init__(self, device, effort):
        self.device = device
        self.samples, self.least = {"full": (9, 3e-3), "quick": (5, 2e-3), "check": (1, 1e-4)}[effort]

    def sample(self, calls, first, count, keeps=False):
        """Seconds of `count` calls, which run through the list from number `first`. Results that are kept
        take new memory."""
        self.device.synchronize()
        kept = []
        start = time.perf_counter()
        for number in range(first, first + count):
            result = calls[number % len(calls)]()
            if keeps:
                kept.append(result)
        self.device.synchronize()
        return (time.perf_counter() - start) / count

    def time(self, calls, kept_bytes=0):
        """Median seconds of a call, and its median absolute deviation over the median. `kept_bytes`: of
        results that a sample keeps until its end."""
        self.sample(calls, 0, 1)
        once = max(1e-8, self.sample(calls, 1, 1))
        if once > LONGEST_CALL:
            return once, 0.0
        most = KEPT_BYTES // kept_bytes if kept_bytes else 2000
        count = max(1, min(most, 2000, round(self.least / once)))
        samples = max(1, min(self.samples, round(LONGEST_POINT / (once * count))))
        taken = [self.sample(calls, 2 + i * count, count, kept_bytes > 0) for i in range(samples)]
        median = statistics.median(taken)
        return median, statistics.median(abs(one - median) for one in taken) / median


def measure_kernel(name, operands, clock, effort):
    """A kernel's table. A point is left out if the one with half its work took too long."""
    axes, calls = kernels.grid(name, effort), kernels.KERNELS[name][1]
    seconds, spread, slowest = [], [], None
    for sizes in kernels.points(axes):
        work = kernels.product(sizes)
        if slowest and work * slowest > LONGEST_CALL:
            seconds.append(None)
            spread.append(0.0)
            continue
        kept = kernels.kept_bytes(name, sizes, operands.element_bytes)
        median, deviation = clock.time(calls(operands, *sizes), kept)
        seconds.append(median)
        spread.append(round(deviation, 4))
        if median > LONGEST_CALL / 8:
            slowest = min(slowest or 1.0, median / work)
    return {"kernel": name, "axes": [{"name": axis, "sizes": sizes} for axis, sizes in axes],
            "seconds": seconds, "spread": spread}


def bandwidths(operands, clock, function):
    points = []
    for size in (1 << 18, 1 << 21, 1 << 23, 1 << 25, 1 << 27, POOL_BYTES):
        x = operands.pool[:size // operands.element_bytes]
        median, _ = clock.time([lambda: function(x)])
        points.append({"working_set_bytes": size, "bytes_per_s": size / median})
    return points


def probe(torch, operands, clock):
    x, weight = operands.random(448, 1664), operands.random(1664, 1664)
    return {"compute_s": clock.time([lambda: torch.nn.functional.linear(x, weight)])[0],
            "memory_s": clock.time([lambda: operands.pool.sum()])[0], "memory_bytes": POOL_BYTES}


TINY = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 64, "hidden_size": 64,
        "intermediate_size": 128, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 64,
        "rms_norm_eps": 1e-6, "max_position_embeddings": 64}
# headroom's operators of a layer of it, by the kernel that runs each at one token
TINY_LAYER = {"rms_norm": 2, "linear_warm": 7, "rotary": 1, "copy": 1, "step_scores_warm": 1,
              "attention_softmax": 1, "step_context_warm": 1, "residual_add": 2, "silu_gated": 1}
TINY_SIZES = {"rms_norm": (1, 64), "linear_warm": (1, 64, 64), "step_scores_warm": (1, 1, 16, 64),
              "attention_softmax": (1, 1, 16), "step_context_warm": (1, 1, 16, 64)}


def tiny_layer_seconds(torch, operands, clock):
    """Seconds of a decode step of one layer, whose kernels take next to no time."""
    import torch_measure
    seconds = {}
    for layers in (2, 10):
        model = torch_measure.build_model({**TINY, "num_hidden_layers": layers}, "eager")
        model = model.eval().to(device=operands.device, dtype=operands.dtype)
        ids = torch.zeros((1, 16), dtype=torch.long, device=operands.device)
        cache = model(ids, use_cache=True).past_key_values
        token = ids[:, :1]
        seconds[layers] = clock.time([lambda: model(token, past_key_values=cache, use_cache=True)])[0]
    return (seconds[10] - seconds[2]) / 8


def step_overhead(torch, operands, clock):
    """Host's seconds of an operator outside its kernels: modules, views, and the cache's classes."""
    layer = tiny_layer_seconds(torch, operands, clock)
    if clock.device.kind != "cpu":  # the host's whole time: kernels run behind it
        return layer / sum(TINY_LAYER.values())
    inside = sum(count * clock.time(kernels.KERNELS[name][1](operands, *TINY_SIZES.get(name, (64,))))[0]
                 for name, count in TINY_LAYER.items())
    return max(0.0, layer - inside) / sum(TINY_LAYER.values())


def measure_type(torch, device, dtype, clock, effort):
    operands = kernels.Operands(torch, device.name, dtype, POOL_BYTES)
    progress(f"{dtype}: bandwidth and overhead")
    result = {"threads": torch.get_num_threads() if device.kind == "cpu" else 1,
              "dtype": str(dtype).removeprefix("torch."),
              "step_overhead_s": step_overhead(torch, operands, clock), "cold_step_overhead_s": 0.0,
              "probe": probe(torch, operands, clock),
              "read": bandwidths(operands, clock, lambda x: x.sum()),
              "write": bandwidths(operands, clock, lambda x: x.fill_(0.5)), "kernels": []}
    operands.pool.normal_(0, 0.02)
    for name in kernels.names(torch):
        progress(f"{dtype}: {name}")
        result["kernels"].append(measure_kernel(name, operands, clock, effort))
    return result


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def other_programs_cpus(start, seconds):
    """Processors that other programs used since `start`; None where the system does not say."""
    now = busy_seconds()
    if start is None or now is None:
        return None
    return round(min(os.cpu_count(), max(0.0, (now - start) / seconds)), 3)


def busy_seconds():
    """Seconds of all processors spent outside this process, and not idle, since the system started."""
    if not os.path.exists("/proc/stat"):
        return None
    with open("/proc/stat", encoding="utf-8") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    user, _, system, _, _, irq, soft, steal = fields  # nice and idle programs give way
    own = sum(os.times()[:2])
    return (user + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK") - own


def document(arguments, torch, device):
    clock = Clock(device, arguments.effort)
    dtypes = [getattr(torch, name) for name in arguments.dtypes] or device.dtypes()
    busy, start = busy_seconds(), time.perf_counter()
    with torch.inference_mode():
        measured = [measure_type(torch, device, dtype, clock, arguments.effort) for dtype in dtypes]
    progress("")
    others = other_programs_cpus(busy, time.perf_counter() - start) if device.kind == "cpu" else None
    return {
        "schema_version": SCHEMA_VERSION, "name": arguments.name or device.description(),
        "date": datetime.date.today().isoformat(), "effort": "full" if arguments.effort == "full" else "quick",
        "last_level_cache_bytes": device.cache_bytes(),
        "context": {"cpu": device.description(), "logical_cpus": os.cpu_count(), "compiler": "",
                    "backend": f"PyTorch {torch.__version__}", "other_programs_cpus": others},
        "source": "measured", "engine": "pytorch",
        "device": {"architecture": device.architecture(), "memory_bytes": device.memory_bytes(),
                   "runs_behind_host": device.kind != "cpu"},
        "by_threads": measured, "interconnect": None}


def main():
    arguments = parse()
    torch = import_torch()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    device = Device(torch, arguments.device)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1 and device.kind == "mps":
        sys.exit("torch_calibrate: torch.distributed has no collectives on mps; run without torchrun")
    result = None
    if processes == 1 or os.environ["RANK"] == "0":
        result = document(arguments, torch, device)
    if processes > 1:
        import torch_collectives
        tables, link = torch_collectives.measure(torch, device, arguments.effort != "full")
        if result is None:
            return
        result["collectives"], result["interconnect"] = tables, link
    text = json.dumps(result, indent=1) + "\n"
    if arguments.output == "-":
        sys.stdout.write(text)
    else:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
