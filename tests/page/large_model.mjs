// A model of 6 GB as config.json, model.safetensors and model.gguf: files as long as they say, of which only the
// headers take room on the disk.
import { closeSync, ftruncateSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const [kWidth, kInner, kHeads, kKvHeads, kLayers, kVocab, kContext] = [8192, 28672, 64, 8, 2, 128256, 8192];
const kKvWidth = (kWidth * kKvHeads) / kHeads;

const kConfig = { _name_or_path: "example/large-llama", model_type: "llama", architectures: ["LlamaForCausalLM"], hidden_size: kWidth,
  intermediate_size: kInner, num_attention_heads: kHeads, num_key_value_heads: kKvHeads, num_hidden_layers: kLayers,
  vocab_size: kVocab, max_position_embeddings: kContext, tie_word_embeddings: true, torch_dtype: "bfloat16" };

/// Names in safetensors and in GGUF, and shapes, of a layer's weights.
const kLayer = [
  ["self_attn.q_proj", "attn_q", [kWidth, kWidth]],
  ["self_attn.k_proj", "attn_k", [kKvWidth, kWidth]],
  ["self_attn.v_proj", "attn_v", [kKvWidth, kWidth]],
  ["self_attn.o_proj", "attn_output", [kWidth, kWidth]],
  ["mlp.gate_proj", "ffn_gate", [kInner, kWidth]],
  ["mlp.up_proj", "ffn_up", [kInner, kWidth]],
  ["mlp.down_proj", "ffn_down", [kWidth, kInner]],
  ["input_layernorm", "attn_norm", [kWidth]],
  ["post_attention_layernorm", "ffn_norm", [kWidth]],
];

const kTensors = [
  ["model.embed_tokens.weight", "token_embd.weight", [kVocab, kWidth]],
  ["model.norm.weight", "output_norm.weight", [kWidth]],
  ...[...Array(kLayers).keys()].flatMap((layer) => kLayer.map(([name, ggml, shape]) =>
    [`model.layers.${layer}.${name}.weight`, `blk.${layer}.${ggml}.weight`, shape])),
];

function elements(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

function writeSparse(path, head, bytes) {
  const file = openSync(path, "w");
  writeSync(file, head);
  ftruncateSync(file, bytes);
  closeSync(file);
}

function uint32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function writeSafetensors(path) {
  let end = 0;
  const header = {};
  for (const [name, , shape] of kTensors) {
    const begin = end;
    end += 2 * elements(shape);
    header[name] = { dtype: "BF16", shape, data_offsets: [begin, end] };
  }
  const json = Buffer.from(JSON.stringify(header));
  writeSparse(path, Buffer.concat([uint64(json.length), json]), 8 + json.length + end);
}

/// Numbers of the format: github.com/ggml-org/ggml, docs/gguf.md.
const [kVersion, kUint32, kFloat32, kString, kBfloat16, kAlignment] = [3, 4, 6, 8, 30, 32];

function text(value) {
  return Buffer.concat([uint64(value.length), Buffer.from(value)]);
}

function pair(key, value) {
  if (typeof value === "string") return Buffer.concat([text(key), uint32(kString), text(value)]);
  const float = Buffer.alloc(4);
  float.writeFloatLE(value);
  return Buffer.concat([text(key), ...(Number.isInteger(value) ? [uint32(kUint32), uint32(value)] : [uint32(kFloat32), float])]);
}

function writeGguf(path) {
  const metadata = { "general.architecture": "llama", "general.name": "large-llama", "llama.context_length": kContext, "llama.embedding_length": kWidth,
    "llama.block_count": kLayers, "llama.feed_forward_length": kInner, "llama.attention.head_count": kHeads,
    "llama.attention.head_count_kv": kKvHeads, "llama.attention.layer_norm_rms_epsilon": 1e-5 };
  let offset = 0;
  const infos = kTensors.map(([, name, shape]) => {
    const info = Buffer.concat([text(name), uint32(shape.length), ...[...shape].reverse().map(uint64), uint32(kBfloat16), uint64(offset)]);
    offset += Math.ceil((2 * elements(shape)) / kAlignment) * kAlignment;
    return info;
  });
  const pairs = Object.entries(metadata).map(([key, value]) => pair(key, value));
  const head = Buffer.concat([Buffer.from("GGUF"), uint32(kVersion), uint64(infos.length), uint64(pairs.length), ...pairs, ...infos]);
  writeSparse(path, head, Math.ceil(head.length / kAlignment) * kAlignment + offset);
}

export function writeConfig(folder) {
  writeFileSync(join(folder, "config.json"), JSON.stringify(kConfig));
}

/// Writes the model's three files to `folder`.
export function writeModel(folder) {
  writeConfig(folder);
  writeSafetensors(join(folder, "model.safetensors"));
  writeGguf(join(folder, "model.gguf"));
}
