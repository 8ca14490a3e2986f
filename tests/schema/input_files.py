"""Files that the cases of validate.py read: configs, models with weights, stores of other programs."""

import json
import math
import shutil
import struct
from pathlib import Path

ATTENTION_LAYER = {
    "model_type": "attention",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "head_dim": 64,
    "value_head_dim": 100,
}

LINEAR_TRANSFORMER = {
    "model_type": "linear_transformer",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "vocab_size": 101,
    "max_position_embeddings": 64,
}

VOXTRAL = {
    "model_type": "voxtral",
    "audio_config": {"hidden_size": 8, "intermediate_size": 32, "num_attention_heads": 2,
                     "num_hidden_layers": 1, "num_mel_bins": 4, "max_source_positions": 20},
    "text_config": {"model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
                    "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 16,
                    "max_position_embeddings": 512},
}

GPT2 = {
    "model_type": "gpt2",
    "n_embd": 4,
    "n_head": 2,
    "n_layer": 1,
    "n_positions": 8,
    "vocab_size": 16,
}


def safetensors(shapes):
    """The bytes of a file with float32 zeros of these shapes."""
    header = {}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def gpt2_shapes():
    """The tensors of GPT2, and a buffer of older files."""
    shapes = {"wte.weight": [16, 4], "wpe.weight": [8, 4], "h.0.attn.bias": [1, 1, 8, 8]}
    for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        shapes |= {f"{norm}.weight": [4], f"{norm}.bias": [4]}
    for layer, out, into in (("attn.c_attn", 12, 4), ("attn.c_proj", 4, 4), ("mlp.c_fc", 16, 4),
                             ("mlp.c_proj", 4, 16)):
        shapes |= {f"h.0.{layer}.weight": [into, out], f"h.0.{layer}.bias": [out]}
    return shapes


def gguf(metadata, tensors):
    """The bytes of a file with these integers and strings, and F32 tensors with row-major
    shapes."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    def pair(key, value):
        number = isinstance(value, int)
        return text(key) + struct.pack("<I", 4 if number else 8) + (
            struct.pack("<I", value) if number else text(value))

    infos, offset = b"", 0
    for name, shape in tensors.items():
        infos += text(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", size) for size in reversed(shape))
        infos += struct.pack("<IQ", 0, offset)
        offset += -(-4 * math.prod(shape) // 32) * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(pair(*item) for item in metadata.items()) + infos
    return head + bytes(-len(head) % 32 + offset)


def write_weights(folder):
    """Writes model folders and files for `inspect`."""
    shapes = gpt2_shapes()
    for name, held in (("model", shapes), ("broken", {"wte.weight": [16, 4], "odd": [3]})):
        Path(folder, name).mkdir()
        Path(folder, name, "config.json").write_text(json.dumps(GPT2), encoding="utf-8")
        Path(folder, name, "model.safetensors").write_bytes(safetensors(held))
    Path(folder, "alone.safetensors").write_bytes(safetensors(shapes))
    metadata = {"general.architecture": "gpt2"} | {
        f"gpt2.{key}": value for key, value in (
            ("context_length", 8), ("embedding_length", 4), ("block_count", 1),
            ("feed_forward_length", 16), ("attention.head_count", 2))}
    tensors = {"token_embd.weight": [16, 4], "position_embd.weight": [8, 4]}
    for norm in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        tensors |= {f"{norm}.weight": [4], f"{norm}.bias": [4]}
    for layer, out, into in (("attn_qkv", 12, 4), ("attn_output", 4, 4), ("ffn_up", 16, 4),
                             ("ffn_down", 4, 16)):
        tensors |= {f"blk.0.{layer}.weight": [out, into], f"blk.0.{layer}.bias": [out]}
    Path(folder, "small.gguf").write_bytes(gguf(metadata, tensors))


def write_unknown(folder):
    """Writes folders for `analyze`: an unknown architecture, one whose shards are absent, and a
    LoRA adapter of the folder model."""
    config = {"model_type": "acme", "num_hidden_layers": 1, "num_attention_heads": 2,
              "hidden_size": 4, "torch_dtype": "float32"}
    index = {"metadata": {"total_size": 4096}, "weight_map": {"a": "absent.safetensors"}}
    files = {"unknown/config.json": json.dumps(config).encode(),
             "unknown/model.safetensors": safetensors({"a.weight": [4, 4], "b": [3]}),
             "unknown-shards/model.safetensors.index.json": json.dumps(index).encode(),
             "adapter/adapter_config.json": json.dumps(
                 {"peft_type": "LORA", "base_model_name_or_path": "../model", "r": 2}).encode(),
             "adapter/adapter_model.safetensors": safetensors(
                 {"h.0.attn.c_attn.lora_A.weight": [2, 4], "h.0.attn.c_attn.lora_B.weight": [12, 2]})}
    for name, content in files.items():
        Path(folder, name).parent.mkdir(exist_ok=True)
        Path(folder, name).write_bytes(content)


def write_stores(folder):
    """Puts the folder model into a Hugging Face cache, and a broken manifest among Ollama's."""
    snapshot = Path(folder, "hub", "models--acme--tiny", "snapshots", "0123")
    shutil.copytree(Path(folder, "model"), snapshot)
    manifest = Path(folder, "ollama", "manifests", "registry.ollama.ai", "library", "broken", "1b")
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{", encoding="utf-8")


def write_all(folder):
    """layer.json is ATTENTION_LAYER, linear.json LINEAR_TRANSFORMER, voxtral.json VOXTRAL; pytorch_cpu.json
    is a machine that PyTorch measured; the folder model has GPT2 with all weights, broken with one."""
    for name, config in (("layer.json", ATTENTION_LAYER), ("linear.json", LINEAR_TRANSFORMER),
                         ("voxtral.json", VOXTRAL)):
        Path(folder, name).write_text(json.dumps(config), encoding="utf-8")
    command = "fit llama-3-8b --phase train --count 8 --tp 2 --sp --batch 16 --zero 1 --attention fused"
    runs = {"command": command.split(), "time_s": 0.55, "memory_bytes": 90_000_000_000, "name": "step"}
    Path(folder, "runs.jsonl").write_text(json.dumps(runs) + "\n", encoding="utf-8")
    data = Path(__file__).resolve().parents[1] / "data"
    shutil.copy(data / "machines" / "pytorch_cpu.json", Path(folder, "pytorch_cpu.json"))
    write_weights(folder)
    write_unknown(folder)
    write_stores(folder)
