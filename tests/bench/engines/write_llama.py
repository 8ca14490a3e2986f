#!/usr/bin/env python3
"""Writes a GGUF file of random weights with the shape of a Llama preset.

  write_llama.py --headroom HEADROOM --model smollm2-135m --type float32 --output smollm2.gguf

Weights are normal with the deviation 0.02; norms are 1. Types: float32, bfloat16, and mxfp4, in which
llama.cpp's own program writes experts alone. Needs the Python packages gguf and numpy.
"""
import argparse
import json
import subprocess

import gguf
import numpy

TYPES = {"float32": gguf.GGMLQuantizationType.F32, "bfloat16": gguf.GGMLQuantizationType.BF16,
         "mxfp4": gguf.GGMLQuantizationType.MXFP4}


def described(headroom, model):
    """The sizes that headroom reads of the preset's config."""
    done = subprocess.run([headroom, "analyze", model, "--format", "json"], check=True, text=True,
                          capture_output=True)
    return json.loads(done.stdout)["model"]


def matrices(config):
    """Yields name and shape [rows, columns] of every matrix but the head of logits."""
    hidden, width = config["hidden_size"], config["intermediate_size"]
    query = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    yield "token_embd.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        for name, rows, columns in [("attn_q", query, hidden), ("attn_k", keys, hidden),
                                    ("attn_v", keys, hidden), ("attn_output", hidden, query),
                                    ("ffn_gate", width, hidden), ("ffn_up", width, hidden),
                                    ("ffn_down", hidden, width)]:
            yield f"blk.{layer}.{name}.weight", (rows, columns)


def norms(config):
    for layer in range(config["num_hidden_layers"]):
        yield f"blk.{layer}.attn_norm.weight"
        yield f"blk.{layer}.ffn_norm.weight"
    yield "output_norm.weight"


def writer_of(config, path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("no_vocab")
    return writer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headroom", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tied", action="store_true", help="the head of logits reads the embedding table")
    parser.add_argument("--type", choices=TYPES, default="float32")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    config = described(options.headroom, options.model)
    random = numpy.random.default_rng(1)
    writer = writer_of(config, options.output)
    head = [] if options.tied else [("output.weight", (config["vocab_size"], config["hidden_size"]))]
    for name, shape in [*matrices(config), *head]:
        values = random.standard_normal(shape, dtype=numpy.float32) * numpy.float32(0.02)
        stored = TYPES[options.type]
        writer.add_tensor(name, gguf.quantize(values, stored), raw_dtype=stored)
    for name in norms(config):
        writer.add_tensor(name, numpy.ones(config["hidden_size"], dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
