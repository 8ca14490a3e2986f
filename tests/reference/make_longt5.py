"""Makes tests/data/golden/models/longt5_transient_global anew: a tiny LongT5 with transient global
attention, its inputs, outputs and FLOPs, by transformers in float64.

    python3 tests/reference/make_longt5.py [FOLDER]

Needs torch, transformers and safetensors. The sequences have 23 and 16 tokens, so that global tokens
of 5 leave orphans, and the last one of the second sequence has none of its tokens.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch.utils._python_dispatch import TorchDispatchMode

CONFIG = {"d_model": 48, "d_ff": 80, "d_kv": 10, "num_heads": 4, "num_layers": 3,
          "num_decoder_layers": 2, "vocab_size": 101, "local_radius": 3, "global_block_size": 5,
          "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
          "dropout_rate": 0.0, "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0,
          "tie_word_embeddings": False, "encoder_attention_type": "transient-global"}
TOKENS, READ, DECODED, NEW = 23, 16, 15, 16
SHORT = 4  # tokens, fewer than one global token has
MARGIN = 2e-3  # between the best choice and the next one
FOLDER = Path(__file__).parent.parent / "data/golden/models/longt5_transient_global"


def draw(seed):
    torch.manual_seed(seed)
    model = transformers.LongT5ForConditionalGeneration(transformers.LongT5Config(**CONFIG)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn_like(weight)
            if weight.ndim == 1:
                weight.add_(0.1 * noise)
            elif "shared" in name or "relative" in name:
                weight.copy_(0.5 * noise)
            else:
                weight.copy_(0.7 * noise * weight.shape[-1] ** -0.5)
            weight.copy_(weight.bfloat16())
    return model


def ids(seed, *shape):
    return torch.randint(3, 101, shape, generator=torch.Generator().manual_seed(seed))


def inputs_of(seed):
    source = ids(seed, 2, TOKENS)
    mask = torch.ones_like(source)
    source[1, READ:] = 0
    mask[1, READ:] = 0
    start = torch.zeros((2, 1), dtype=torch.long)
    return {"input_ids": source, "attention_mask": mask,
            "decoder_input_ids": torch.cat([start, ids(seed + 1, 2, DECODED - 1)], dim=1)}


class Products(TorchDispatchMode):
    """Sums 2mnk of matrix products, and apart those that sum the tokens of global blocks."""

    def __init__(self):
        super().__init__()
        self.flops, self.one_hot = 0, 0

    def __torch_dispatch__(self, function, _types, args=(), kwargs=None):
        if function in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default):
            first, second = args
            flops = 2 * first.numel() * second.shape[-1]
            zeros_and_ones = torch.stack([((t == 0) | (t == 1)).all() for t in args]).any()
            if zeros_and_ones:
                self.one_hot += flops
            else:
                self.flops += flops
        return function(*args, **(kwargs or {}))


@torch.no_grad()
def make(folder, seed):
    model = draw(seed)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    torch.set_default_dtype(torch.float64)
    model = model.double()
    inputs = inputs_of(seed)
    with Products() as products:
        result = model(**inputs, output_hidden_states=True, use_cache=False)
    expected = {"logits": result.logits, "encoder_last_hidden_state": result.encoder_last_hidden_state}
    for stack in ("encoder", "decoder"):
        for i, state in enumerate(result[f"{stack}_hidden_states"]):
            expected[f"{stack}_hidden_states.{i}"] = state
    source, prompt = ids(seed + 2, 1, 13), torch.cat([torch.zeros((1, 1), dtype=torch.long),
                                                      ids(seed + 3, 1, 7)], dim=1)
    made, rows = prompt, []
    for _ in range(NEW):
        logits = model(input_ids=source, decoder_input_ids=made, use_cache=False).logits[:, -1]
        rows.append(logits)
        made = torch.cat([made, logits.argmax(-1, keepdim=True)], dim=1)
    logits = torch.stack(rows, dim=1)
    best = logits.topk(2, -1).values
    short, answer = ids(seed + 4, 1, SHORT), prompt[:, :3]
    of_short = model(input_ids=short, decoder_input_ids=answer, use_cache=False).logits
    torch.set_default_dtype(torch.float32)
    expected |= {"generate.ids": made, "generate.logits": logits}
    save_file({name: (value if name == "generate.ids" else value.float()).contiguous().clone()
               for name, value in expected.items()}, folder / "expected.safetensors")
    stored = {name: value.tolist() for name, value in inputs.items()}
    stored["generate"] = {"encoder_input_ids": source.tolist(), "decoder_prompt_ids": prompt.tolist(),
                          "max_new_tokens": NEW, "expected_ids": made.tolist()}
    (folder / "inputs.json").write_text(json.dumps(stored) + "\n")
    record = {"torch": torch.__version__, "transformers": transformers.__version__,
              "parameters": model.num_parameters(), "matrix_flops": products.flops,
              "one_hot_flops": products.one_hot,
              "short": {"encoder_input_ids": short[0].tolist(), "input_ids": answer[0].tolist(),
                        "logits": of_short.float().flatten().tolist()}}
    (folder / "reference.json").write_text(json.dumps(record) + "\n")
    return (best[..., 0] - best[..., 1]).min().item() > MARGIN


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    print(next(seed for seed in range(50) if make(folder, seed)))


if __name__ == "__main__":
    main()
