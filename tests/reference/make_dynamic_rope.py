"""Makes tests/data/families/llama_dynamic_generation: the model of llama_dynamic beside it, and the
tokens that transformers generates with its KV-cache beyond the trained context, in float64.

    python3 tests/reference/make_dynamic_rope.py

Needs torch, transformers and safetensors. Keys in the cache keep the angles of the step that made
them, so a single pass over all tokens has other logits.
"""

import json
import shutil
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

FAMILIES = Path(__file__).parent.parent / "data/families"
FROM, FOLDER = FAMILIES / "llama_dynamic", FAMILIES / "llama_dynamic_generation"
NEW = 20  # tokens behind a prompt of 8; the context has 12
MARGIN = 2e-3


@torch.no_grad()
def main():
    torch.set_default_dtype(torch.float64)
    model = transformers.LlamaForCausalLM.from_pretrained(
        FROM, attn_implementation="eager", dtype=torch.float64).eval()
    stored = json.loads((FROM / "inputs.json").read_text())
    FOLDER.mkdir(exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(FROM / name, FOLDER / name)
    ids = torch.tensor(stored["input_ids"])
    whole = model(ids, output_hidden_states=True, use_cache=False)
    expected = {f"hidden_states.{i}": state for i, state in enumerate(whole.hidden_states)}
    expected["logits"] = whole.logits
    made = torch.tensor(stored["generate"]["prompt_ids"])
    rows, cache, new = [], transformers.DynamicCache(config=model.config), made
    for _ in range(NEW):
        logits = model(new, past_key_values=cache, use_cache=True).logits[:, -1]
        rows.append(logits)
        new = logits.argmax(-1, keepdim=True)
        made = torch.cat([made, new], dim=1)
    logits = torch.stack(rows, dim=1)
    best = logits.topk(2, -1).values
    assert (best[..., 0] - best[..., 1]).min() > MARGIN, "a choice is too close"
    again = model(made[:, :-1], use_cache=False).logits[:, -NEW:]
    print("greatest difference to a single pass:", (again - logits).abs().max().item())
    expected |= {"generate.ids": made, "generate.logits": logits}
    save_file({name: (value if name == "generate.ids" else value.float()).contiguous().clone()
               for name, value in expected.items()}, FOLDER / "expected.safetensors")
    stored["generate"] |= {"max_new_tokens": NEW, "expected_ids": made.tolist()}
    (FOLDER / "inputs.json").write_text(json.dumps(stored) + "\n")


if __name__ == "__main__":
    main()
