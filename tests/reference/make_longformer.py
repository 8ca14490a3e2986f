"""Records the bytes that one layer of Longformer saves for the backward pass: prints JSON, as stored in
tests/data/encoders/longformer_saved.json. Needs torch and transformers.

    python3 tests/reference/make_longformer.py > tests/data/encoders/longformer_saved.json
"""

import json
import pathlib

import torch
import transformers

CONFIG = pathlib.Path(__file__).parent.parent / "data/golden/models/longformer/config.json"
TOKENS = 24
WINDOW = 4


def saved_by_layer(global_tokens):
    """Storages first saved in the second of three layers: [shape, type, bytes]."""
    sizes = json.loads(CONFIG.read_text())
    sizes["attention_window"] = WINDOW
    model = transformers.LongformerModel(transformers.LongformerConfig(**sizes)).train()
    known = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    rows = []
    inside = False

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            kept.append(tensor)  # so that no later storage has its address
            if inside:
                rows.append([list(tensor.shape), str(tensor.dtype), storage.nbytes()])
        return tensor

    def mark(value):
        nonlocal inside
        inside = value

    kept = []
    layer = model.encoder.layer[1]
    layer.register_forward_pre_hook(lambda *_: mark(True))
    layer.register_forward_hook(lambda *_: mark(False))
    ids = torch.randint(3, 100, (1, TOKENS))
    mask = torch.zeros_like(ids)
    mask[:, :global_tokens] = 1
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(input_ids=ids, attention_mask=torch.ones_like(ids), global_attention_mask=mask)
    return rows


def main():
    torch.manual_seed(0)
    records = [{"global_tokens": count, "saved": saved_by_layer(count)} for count in (0, 2)]
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                      "seq_len": TOKENS, "attention_window": WINDOW, "records": records}))


if __name__ == "__main__":
    main()
