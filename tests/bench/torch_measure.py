#!/usr/bin/env python3
"""Times a model with PyTorch and writes a Measurement for `headroom compare`.

    python3 tests/bench/torch_measure.py --config CONFIG.json --name bert-base-uncased --device cuda \\
        --dtype bfloat16 --batch 8 --seq 128 -o measured.json
    headroom analyze bert-base --dtype bf16 --batch 8 --machine h100-80gb --attention eager --format json -o predicted.json
    headroom compare predicted.json measured.json --tolerance time=40%

--config is a model's config.json. Weights are random, since timing does not depend on them. With
Transformers any of its models runs; without it BERT, GPT-2 and Llama run through torch_models.py.
reports/measure.schema.json describes the JSON. torch.utils.flop_counter counts FLOPs (PyTorch 2.1 and
later).
"""
import argparse
import copy
import json
import os
import platform
import statistics
import sys
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True, help="the model's config.json")
    parser.add_argument("--name", required=True, help="headroom's name of the model")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, …")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--attention", default="eager", choices=["eager", "fused"])
    parser.add_argument("--phase", default="prefill", choices=["prefill", "decode", "generate"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128, help="new tokens of each sequence")
    parser.add_argument("--past", type=int, default=127, help="tokens in the cache; decode only")
    parser.add_argument("--new-tokens", type=int, default=32, help="generate only")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("-o", "--output", default="-")
    return parser.parse_args()


def import_transformers():
    """Returns the module transformers, or None."""
    try:
        import transformers
    except ImportError:
        return None
    return transformers


def build_with_transformers(attention, transformers, values):
    settings = dict(values)
    config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
    config._attn_implementation = "sdpa" if attention == "fused" else "eager"
    wanted = (values.get("architectures") or ["AutoModel"])[0]
    if wanted.endswith("LMHeadModel") or wanted.endswith("ForCausalLM"):
        return transformers.AutoModelForCausalLM.from_config(config)
    return transformers.AutoModel.from_config(config)


def build_model(values, attention):
    """Builds the model of a config with random weights: by Transformers, or without it by torch_models."""
    transformers = import_transformers()
    if transformers is None:
        import torch_models
        return torch_models.build(values, attention)
    return build_with_transformers(attention, transformers, values)


def build(arguments, torch):
    """Builds the model of the config with random weights on the device."""
    with open(arguments.config, encoding="utf-8") as file:
        values = json.load(file)
    values = values.get("config", values)  # a headroom preset stores it under this key
    model = build_model(values, arguments.attention)
    return model.eval().to(device=arguments.device, dtype=getattr(torch, arguments.dtype))


class Runner:
    """Runs one prefill, one decode step with a filled KV-cache, or one greedy generation."""

    def __init__(self, arguments, torch, model):
        self.arguments, self.torch, self.model = arguments, torch, model
        generator = torch.Generator().manual_seed(1)
        config = model.config

        def tokens(count):
            if not hasattr(config, "vocab_size"):  # a vision model
                side = config.image_size
                pixels = torch.rand(arguments.batch, config.num_channels, side, side, generator=generator)
                return pixels.to(arguments.device, getattr(torch, arguments.dtype))
            ids = torch.randint(0, config.vocab_size, (arguments.batch, count), generator=generator)
            return ids.to(arguments.device)

        self.prompt = tokens(arguments.past if arguments.phase == "decode" else arguments.seq)
        self.next = tokens(1)
        self.ttft, self.cache = [], None

    def synchronize(self):
        kind = self.arguments.device.split(":")[0]
        if kind != "cpu":
            getattr(self.torch, kind).synchronize()

    def filled_cache(self):
        """A cache that a step has extended last, which decides its layout in memory."""
        if self.arguments.past == 1:
            return self.model(self.prompt, use_cache=True).past_key_values
        cache = self.model(self.prompt[:, :-1], use_cache=True).past_key_values
        return self.model(self.prompt[:, -1:], past_key_values=cache, use_cache=True).past_key_values

    def run(self):
        """Returns the seconds of one run."""
        cache = None
        if self.arguments.phase == "decode":
            if self.cache is None:
                self.cache = self.filled_cache()
            cache = copy.deepcopy(self.cache)  # a step extends it
        self.synchronize()
        start = time.perf_counter()
        if self.arguments.phase == "decode":
            self.model(self.next, past_key_values=cache, use_cache=True)
        elif self.arguments.phase == "prefill":
            self.model(self.prompt)
        else:
            self.generate(start)
        self.synchronize()
        return time.perf_counter() - start

    def generate(self, start):
        output = self.model(self.prompt, use_cache=True)
        token = output.logits[:, -1:].argmax(-1)
        self.synchronize()
        self.ttft.append(time.perf_counter() - start)
        for _ in range(self.arguments.new_tokens - 1):
            output = self.model(token, past_key_values=output.past_key_values, use_cache=True)
            token = output.logits[:, -1:].argmax(-1)


def counted_flops(torch, runner):
    """Returns PyTorch's count of matrix FLOPs of a prefill; None if it has no counter."""
    try:
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:
        return None
    if runner.arguments.phase != "prefill":
        return None
    with FlopCounterMode(display=False) as counter:
        runner.run()
    return counter.get_total_flops()


def measurement(arguments, torch, model, runner, samples):
    median = statistics.median(samples)
    parameters = {p.data_ptr(): p.numel() for p in model.parameters()}
    generates = arguments.phase == "generate"
    ttft = statistics.median(runner.ttft[-len(samples):]) if generates else None
    steps = arguments.new_tokens - 1
    size = 4 if arguments.dtype == "float32" else 2
    kind = arguments.device.split(":")[0]
    names_device = kind in ("cuda", "xpu")
    device = getattr(torch, kind).get_device_name(arguments.device) if names_device else platform.processor()
    return {
        "schema_version": 2, "engine": f"PyTorch {torch.__version__}", "model": {"name": arguments.name},
        "workload": {"phase": "prefill" if generates else arguments.phase, "batch_size": arguments.batch,
                     "seq_len": 1 if arguments.phase == "decode" else arguments.seq,
                     "past_len": arguments.past if arguments.phase == "decode" else 0,
                     "dtype": arguments.dtype, "attention": arguments.attention,
                     "new_tokens": arguments.new_tokens if generates else None},
        "time": {"median_s": median,
                 "mad_s": statistics.median(abs(sample - median) for sample in samples),
                 "min_s": min(samples), "max_s": max(samples), "samples_s": samples},
        "ttft_s": ttft, "tpot_s": (median - ttft) / steps if generates and steps else None,
        "counted": {"parameters": sum(parameters.values()),
                    "matrix_flops": counted_flops(torch, runner),
                    "weight_bytes": sum(parameters.values()) * size, "kv_cache_bytes": None},
        "memory": {"arena_peak_bytes": None, "rss_before_bytes": None, "rss_peak_bytes": None},
        "ops": [],
        "context": {"cpu": device or platform.machine(), "logical_cpus": os.cpu_count(),
                    "threads": torch.get_num_threads(), "backend": f"PyTorch {torch.__version__}"},
        "warnings": []}


def main():
    arguments = parse()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"torch_measure: {error}; install PyTorch")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    kind = arguments.device.split(":")[0]
    if kind in ("cuda", "xpu") and ":" in arguments.device:
        getattr(torch, kind).set_device(arguments.device)
    model = build(arguments, torch)
    runner = Runner(arguments, torch, model)
    with torch.inference_mode():
        for _ in range(arguments.warmup):
            runner.run()
        samples = [runner.run() for _ in range(arguments.runs)]
        document = measurement(arguments, torch, model, runner, samples)
    text = json.dumps(document, indent=1) + "\n"
    if arguments.output == "-":
        sys.stdout.write(text)
    else:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
