#!/usr/bin/env python3
"""Makes tests/data/quantized: tiny models in the formats of quantisation libraries, with outputs.

usage: make_quantized.py [--check] [FOLDER]

Weights are drawn, quantised and packed here as each library documents, and dequantised by the
library's formula in float64. transformers' Llama and GptOss run the dequantised weights in float64.
Every folder has config.json, model.safetensors, inputs.json and expected.safetensors.

--check also holds the packed tensors against compressed-tensors and bitsandbytes themselves, if
they are installed: their own code must dequantise them to the same weights.

Needs torch, transformers, numpy and safetensors. Made with torch 2.15.0, transformers 5.24.0,
compressed-tensors 0.20.0 and bitsandbytes 0.50.2.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import GptOssConfig, GptOssForCausalLM, LlamaConfig, LlamaForCausalLM

HIDDEN, INTERMEDIATE, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 64, 192, 4, 2, 16, 80
GROUP = 32
PROMPT, NEW_TOKENS = [3, 17, 5, 60, 41, 8, 22], 8

# The 16 levels of NF4: quantiles of the normal distribution (arXiv 2305.14314, appendix E).
NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
]  # fmt: skip
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def float8_values():
    """The values of all 256 codes of E4M3; NaN for the two that have none."""
    return torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double().numpy()


def to_float8(values):
    return torch.from_numpy(values).float().clamp(-448, 448).to(torch.float8_e4m3fn)


def nearest(values, levels):
    return np.abs(values[..., None] - levels).argmin(-1).astype(np.uint8)


def pack_words(codes, bits):
    """Codes along the last axis, the first one in the lowest bits of 32."""
    per_word = 32 // bits
    padded = -(-codes.shape[-1] // per_word) * per_word
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, padded - codes.shape[-1])])
    parts = codes.reshape(*codes.shape[:-1], -1, per_word).astype(np.uint64)
    shifts = np.arange(per_word, dtype=np.uint64) * np.uint64(bits)
    return torch.from_numpy((parts << shifts).sum(-1).astype(np.uint32).view(np.int32).copy())


def pack_pairs(codes):
    """Two codes a byte, the first one in the low bits."""
    return torch.from_numpy(codes[..., 0::2] | codes[..., 1::2] << 4)


def integers(weight, bits, group, symmetric):
    """Codes, scales and zero points per group of inputs: [out, in], [out, groups] twice."""
    out, inputs = weight.shape
    groups = weight.reshape(out, inputs // group, group)
    top = 2**bits - 1
    if symmetric:
        zero = np.full(groups.shape[:2], 2 ** (bits - 1))
        scale = (np.abs(groups).max(-1) / (2 ** (bits - 1) - 1)).astype(np.float16)
    else:
        low, high = np.minimum(groups.min(-1), 0), np.maximum(groups.max(-1), 0)
        scale = ((high - low) / top).astype(np.float16)
        zero = np.clip(np.rint(-low / scale), 1, top).astype(np.int64)
    codes = np.clip(np.rint(groups / scale[..., None].astype(float)) + zero[..., None], 0, top)
    return codes.reshape(out, inputs).astype(np.int64), scale, zero


def dequantised(codes, scale, zero):
    out, groups = scale.shape
    values = codes.reshape(out, groups, -1) - zero[..., None]
    return (values * scale[..., None].astype(float)).reshape(codes.shape)


def gptq(bits, symmetric, format, act_order):
    def pack(weight, generator):
        inputs = weight.shape[1]
        group_of = np.arange(inputs) // GROUP
        if act_order:
            group_of = generator.permutation(group_of)
        order = np.argsort(group_of, kind="stable")
        codes, scale, zero = integers(weight[:, order], bits, GROUP, symmetric)
        values = np.empty_like(weight)
        values[:, order] = dequantised(codes, scale, zero)
        plain = np.empty_like(codes)
        plain[:, order] = codes
        stored_zero = zero - 1 if format == "gptq" else zero
        return values, {
            ".qweight": pack_words(plain, bits).T.contiguous(),
            ".qzeros": pack_words(stored_zero.T, bits),
            ".scales": torch.from_numpy(scale.T.copy()),
            ".g_idx": torch.from_numpy(group_of.astype(np.int32)),
        }

    return pack


def awq(weight, _):
    codes, scale, zero = integers(weight, 4, GROUP, False)

    def pack(values):  # [n, out]: eight outputs a word, in AWQ's order
        parts = values.reshape(values.shape[0], -1, 8)[..., AWQ_ORDER]
        return pack_words(parts.reshape(values.shape), 4)

    return dequantised(codes, scale, zero), {
        ".qweight": pack(codes.T),
        ".qzeros": pack(zero.T),
        ".scales": torch.from_numpy(scale.T.copy()),
    }


def packed(bits, group, symmetric):
    """compressed-tensors, "pack-quantized"; a group of 0 is a whole row."""

    def pack(weight, _):
        codes, scale, zero = integers(weight, bits, group or weight.shape[1], symmetric)
        tensors = {
            ".weight_packed": pack_words(codes, bits),
            ".weight_scale": torch.from_numpy(scale),
            ".weight_shape": torch.tensor(weight.shape, dtype=torch.int64),
        }
        if not symmetric:
            tensors[".weight_zero_point"] = pack_words(zero.T, bits).T.contiguous()
        return dequantised(codes, scale, zero), tensors

    return pack


def int8(symmetric):
    """compressed-tensors, "int-quantized", a scale per row."""

    def pack(weight, _):
        codes, scale, zero = integers(weight, 8, weight.shape[1], symmetric)
        tensors = {
            ".weight": torch.from_numpy((codes - 128).astype(np.int8)),
            ".weight_scale": torch.from_numpy(scale),
        }
        if not symmetric:
            tensors[".weight_zero_point"] = torch.from_numpy((zero - 128).astype(np.int8))
        return dequantised(codes, scale, zero), tensors

    return pack


def int8_rows(weight, _):
    """LLM.int8 of bitsandbytes: rows of int8 with their largest magnitudes."""
    largest = np.abs(weight).max(-1).astype(np.float32)
    codes = np.rint(weight * 127 / largest[:, None].astype(float)).astype(np.int8)
    return codes * (largest[:, None].astype(float) / 127), {
        ".weight": torch.from_numpy(codes),
        ".SCB": torch.from_numpy(largest),
        ".weight_format": torch.tensor(0, dtype=torch.uint8),
    }


def float8_blocks(weight, _):
    out, inputs = weight.shape
    rows, columns = -(-out // 128), -(-inputs // 128)
    scale = np.zeros((rows, columns), dtype=np.float32)
    codes, values = torch.empty(weight.shape, dtype=torch.float8_e4m3fn), np.empty_like(weight)
    for i in range(rows):
        for j in range(columns):
            at = (slice(128 * i, 128 * i + 128), slice(128 * j, 128 * j + 128))
            scale[i, j] = np.abs(weight[at]).max() / 448
            codes[at] = to_float8(weight[at] / scale[i, j])
            values[at] = codes[at].double().numpy() * float(scale[i, j])
    return values, {".weight": codes, ".weight_scale_inv": torch.from_numpy(scale)}


def float8_rows(weight, _):
    scale = torch.from_numpy(np.abs(weight).max(-1, keepdims=True) / 448).to(torch.bfloat16)
    codes = to_float8(weight / scale.double().numpy())
    values = codes.double().numpy() * scale.double().numpy()
    return values, {".weight": codes, ".weight_scale": scale}


def float8_tensor(weight, _):
    scale = np.float32(np.abs(weight).max() / 448)
    codes = to_float8(weight / scale)
    return codes.double().numpy() * float(scale), {
        ".weight": codes,
        ".weight_scale": torch.tensor(scale),
        ".input_scale": torch.tensor(0.02),
    }


def nf4(nested):
    def pack(weight, _):
        blocks = weight.reshape(-1, 64)
        absmax = np.abs(blocks).max(-1).astype(np.float32)
        levels = np.array(NF4, dtype=np.float32)
        state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16",
                 "shape": list(weight.shape)}  # fmt: skip
        tensors = {".weight.quant_map": torch.from_numpy(levels)}
        if nested:
            # bitsandbytes has a dynamic code of 256 levels; any sorted levels will do.
            map256 = np.sort(np.concatenate([-np.geomspace(1e-4, 1, 127), [0],
                                             np.geomspace(1e-4, 1, 128)])).astype(np.float32)  # fmt: skip
            offset = np.float32(absmax.mean())
            centred = absmax - offset
            count = -(-centred.size // 256)
            parts = np.pad(centred, (0, 256 * count - centred.size)).reshape(count, 256)
            second = np.abs(parts).max(-1).astype(np.float32)
            codes256 = nearest(parts / second[:, None], map256).reshape(-1)[: centred.size]
            scale = (map256[codes256].astype(float) * np.repeat(second, 256)[: centred.size]
                     + float(offset))  # fmt: skip
            state |= {"nested_blocksize": 256, "nested_dtype": "float32",
                      "nested_offset": float(offset)}  # fmt: skip
            tensors |= {
                ".weight.absmax": torch.from_numpy(codes256),
                ".weight.nested_absmax": torch.from_numpy(second),
                ".weight.nested_quant_map": torch.from_numpy(map256),
            }
        else:
            scale = absmax.astype(float)
            tensors[".weight.absmax"] = torch.from_numpy(absmax)
        codes = nearest(blocks / scale[:, None], levels)
        flat = codes.reshape(-1)
        text = json.dumps(state).encode()
        tensors[".weight"] = torch.from_numpy(flat[0::2] << 4 | flat[1::2])[:, None]
        tensors[".weight.quant_state.bitsandbytes__nf4"] = torch.tensor(list(text), dtype=torch.uint8)
        values = levels.astype(float)[codes] * scale[:, None]
        return values.reshape(weight.shape), tensors

    return pack


def nvfp4(library):
    def pack(weight, _):
        out, inputs = weight.shape
        groups = weight.reshape(out, -1, 16)
        tensor_scale = np.float32(np.abs(weight).max() / (6 * 448))
        if library == "compressed-tensors":
            tensor_scale = 1 / np.float32(1 / tensor_scale)
        scale8 = to_float8(np.abs(groups).max(-1) / 6 / tensor_scale)
        scale = scale8.double().numpy() * float(tensor_scale)
        codes = nearest(groups / scale[..., None], FP4).reshape(out, inputs)
        values = (FP4[codes].reshape(groups.shape) * scale[..., None]).reshape(weight.shape)
        if library == "modelopt":
            return values, {
                ".weight": pack_pairs(codes),
                ".weight_scale": scale8,
                ".weight_scale_2": torch.tensor(tensor_scale),
                ".input_scale": torch.tensor(0.02),
            }
        return values, {
            ".weight_packed": pack_pairs(codes),
            ".weight_scale": scale8,
            ".weight_global_scale": torch.tensor([np.float32(1 / tensor_scale)]),
        }

    return pack


def mxfp4_values(weight):
    """[…, out, in] in groups of 32: values, codes and exponents of scales, E8M0."""
    groups = weight.reshape(*weight.shape[:-1], -1, 32)
    exponent = np.floor(np.log2(np.abs(groups).max(-1))).astype(int) - 2
    codes = nearest(groups / 2.0 ** exponent[..., None], FP4)
    values = FP4[codes] * 2.0 ** exponent[..., None]
    return values.reshape(weight.shape), codes, (exponent + 127).astype(np.uint8)


def compressed_config(format, **weights):
    group = {"targets": ["Linear"], "input_activations": None, "output_activations": None,
             "weights": {"dynamic": False, "num_bits": 8, "type": "int", "symmetric": True,
                         "strategy": "channel", "group_size": None, **weights}}  # fmt: skip
    return {"quant_method": "compressed-tensors", "format": format, "ignore": ["lm_head"],
            "config_groups": {"group_0": group}, "quantization_status": "compressed"}  # fmt: skip


def gptq_config(bits, symmetric, format, act_order):
    return {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "desc_act": act_order,
            "sym": symmetric, "checkpoint_format": format}  # fmt: skip


def gptq_model(*choices):
    return gptq(*choices), gptq_config(*choices)


def bitsandbytes_config(**choices):
    return {"quant_method": "bitsandbytes", "llm_int8_skip_modules": ["lm_head"], **choices}


def nf4_config(nested):
    return bitsandbytes_config(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                               bnb_4bit_use_double_quant=nested)  # fmt: skip


MODELS = {
    "fp8_blocks": (
        float8_blocks,
        {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
         "weight_block_size": [128, 128]},
    ),
    "fp8_rows": (float8_rows, compressed_config("float-quantized", type="float")),
    "fp8_tensor": (
        float8_tensor,
        {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]},
    ),
    "gptq_int4": gptq_model(4, False, "gptq", False),
    "gptq_int4_ordered": gptq_model(4, False, "gptq_v2", True),
    "gptq_int8": gptq_model(8, True, "gptq", False),
    "awq_int4": (
        awq,
        {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm",
         "zero_point": True},
    ),
    "int8_rows": (int8(True), compressed_config("int-quantized")),
    "int8_rows_zeros": (int8(False), compressed_config("int-quantized", symmetric=False)),
    "packed_int8": (packed(8, 0, True), compressed_config("pack-quantized")),
    "packed_int4": (
        packed(4, GROUP, False),
        compressed_config("pack-quantized", num_bits=4, strategy="group", group_size=GROUP,
                          symmetric=False),
    ),
    "nf4": (nf4(False), nf4_config(False)),
    "nf4_nested": (nf4(True), nf4_config(True)),
    "llm_int8": (int8_rows, bitsandbytes_config(load_in_8bit=True)),
    "nvfp4": (
        nvfp4("modelopt"),
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16,
         "ignore": ["lm_head"]},
    ),
    "nvfp4_packed": (
        nvfp4("compressed-tensors"),
        compressed_config("nvfp4-pack-quantized", num_bits=4, type="float",
                          strategy="tensor_group", group_size=16),
    ),
}  # fmt: skip


def llama_config():
    return LlamaConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=INTERMEDIATE, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM,
        max_position_embeddings=64, tie_word_embeddings=False, architectures=["LlamaForCausalLM"],
    )  # fmt: skip


def drawn(model, generator):
    """The model's weights, drawn in bfloat16, as float64 arrays."""
    weights = {}
    for name, tensor in model.state_dict().items():
        scale = 0.25 if tensor.ndim > 1 else 0.1
        values = generator.standard_normal(tensor.shape) * scale + (tensor.ndim == 1)
        weights[name] = torch.from_numpy(values).to(torch.bfloat16).double().numpy()
    return weights


def run(model, weights):
    """Logits of the prompt, and greedy tokens with the logits that chose them."""
    model.load_state_dict({name: torch.from_numpy(values) for name, values in weights.items()})
    model = model.double().eval()
    logits, ids = [], list(PROMPT)
    with torch.no_grad():
        prompt = model(torch.tensor([PROMPT]), output_hidden_states=True)
        for _ in range(NEW_TOKENS):
            last = model(torch.tensor([ids])).logits[0, -1]
            logits.append(last)
            ids.append(int(last.argmax()))
    gaps = [float(l.topk(2).values.diff().abs()) for l in logits]
    assert min(gaps) > 1e-3, "two tokens are too close for float32"
    return {
        "logits": prompt.logits.float(),
        "hidden_states.0": prompt.hidden_states[0].float(),
        "hidden_states.1": prompt.hidden_states[1].float(),
        "generate.ids": torch.tensor([ids]),
        "generate.logits": torch.stack(logits)[None].float(),
    }


def write(folder, config, quantization, tensors, expected):
    folder.mkdir(parents=True, exist_ok=True)
    values = config.to_diff_dict() | {"quantization_config": quantization}
    values |= {"architectures": config.architectures, "torch_dtype": "bfloat16"}
    values.pop("dtype", None)
    (folder / "config.json").write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    inputs = {"input_ids": [PROMPT],
              "generate": {"prompt_ids": [PROMPT], "max_new_tokens": NEW_TOKENS,
                           "expected_ids": expected["generate.ids"].tolist()}}  # fmt: skip
    (folder / "inputs.json").write_text(json.dumps(inputs) + "\n")
    save_file({name: tensor.contiguous() for name, tensor in expected.items()},
              folder / "expected.safetensors")  # fmt: skip


def make_llama(folder, pack, quantization, check):
    generator = np.random.default_rng(7)
    config = llama_config()
    model = LlamaForCausalLM._from_config(config, dtype=torch.float64)
    weights = drawn(model, generator)
    tensors = {}
    for name, values in weights.items():
        if not name.endswith("_proj.weight"):
            tensors[name] = torch.from_numpy(values).to(torch.bfloat16)
            continue
        weights[name], pieces = pack(values, generator)
        if check:
            check_pieces(pieces, weights[name], quantization)
        base = name.removesuffix(".weight")
        tensors |= {base + label: piece for label, piece in pieces.items()}
    write(folder, config, quantization, tensors, run(model, weights))


def make_gpt_oss(folder):
    generator = np.random.default_rng(7)
    config = GptOssConfig(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=HIDDEN, num_hidden_layers=2,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM,
        num_local_experts=4, num_experts_per_tok=2, sliding_window=4,
        max_position_embeddings=64, architectures=["GptOssForCausalLM"],
        rope_scaling=None, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    config._attn_implementation = config._experts_implementation = "eager"
    model = GptOssForCausalLM._from_config(config, dtype=torch.float64)
    weights = drawn(model, generator)
    tensors = {}
    for name, values in weights.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors[name] = torch.from_numpy(values).to(torch.bfloat16)
            continue
        dense, codes, exponents = mxfp4_values(values.transpose(0, 2, 1))  # [experts, out, in]
        weights[name] = np.ascontiguousarray(dense.transpose(0, 2, 1))
        tensors[name + "_blocks"] = pack_pairs(codes)
        tensors[name + "_scales"] = torch.from_numpy(exponents)
    quantization = {"quant_method": "mxfp4",
                    "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                               "model.embed_tokens", "lm_head"]}  # fmt: skip
    write(folder, config, quantization, tensors, run(model, weights))


def check_pieces(pieces, values, quantization):
    """Holds packed tensors against the library's own code."""
    values = torch.from_numpy(values)
    if quantization["quant_method"] == "bitsandbytes" and ".SCB" not in pieces:
        from bitsandbytes.functional import QuantState, dequantize_4bit

        state = {label.removeprefix(".weight."): piece for label, piece in pieces.items()}
        packed_weight = state.pop(".weight")
        restored = QuantState.from_dict(state, torch.device("cpu"))
        restored.dtype = torch.float32
        own = dequantize_4bit(packed_weight, restored)
    elif quantization["quant_method"] == "compressed-tensors" and ".weight_shape" in pieces:
        from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32

        bits = quantization["config_groups"]["group_0"]["weights"]["num_bits"]
        shape = torch.Size(pieces[".weight_shape"].tolist())
        codes = unpack_from_int32(pieces[".weight_packed"], bits, shape)
        scale = pieces[".weight_scale"].double()
        zero = torch.zeros(scale.shape, dtype=torch.int8)
        if ".weight_zero_point" in pieces:
            zero = unpack_from_int32(pieces[".weight_zero_point"], bits, scale.shape, packed_dim=0)
        parts = codes.double().reshape(*scale.shape, -1) - zero.double()[..., None]
        own = (parts * scale[..., None]).reshape(shape)
    elif ".weight_global_scale" in pieces:
        from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8

        size = pieces[".weight_packed"].shape
        codes = unpack_fp4_from_uint8(pieces[".weight_packed"], size[0], 2 * size[1])
        scale = pieces[".weight_scale"].double() / pieces[".weight_global_scale"].double()
        own = (codes.double().reshape(*scale.shape, 16) * scale[..., None]).reshape(values.shape)
    else:
        return
    error = float((own.double() - values).abs().max())
    assert error < 1e-5 * float(values.abs().max()), f"the library's own weights differ by {error}"


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    rest = [a for a in arguments if a != "--check"]
    folder = Path(*rest) if rest else Path(__file__).parent.parent / "data" / "quantized"
    for name, (pack, quantization) in MODELS.items():
        make_llama(folder / name, pack, quantization, check)
    make_gpt_oss(folder / "mxfp4")


if __name__ == "__main__":
    main()
