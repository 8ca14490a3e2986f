// Values of the symbols that follow from a reader's choices, by the rules of headroom's bindings
// (src/graph/workload.cpp). tests/page compares them with the program at other workloads.
import type { Values } from "./polynomial";

export interface Rules {
  phase: string;
  window: { kind: string; size: string };
  experts: { routed: string; per_token: string };
}

export const kDtypeBytes: Record<string, bigint> = { float32: 4n, bfloat16: 2n, float16: 2n };

const kFloat32Bytes = 4n;

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/// Unmasked pairs of s new tokens after p earlier ones.
function causalPairs(s: bigint, p: bigint): bigint {
  return s * p + (s * (s + 1n)) / 2n;
}

function slidingPairs(size: bigint, s: bigint, p: bigint): bigint {
  const room = size > p ? size - p : 0n;
  const growing = least(room, s);
  return causalPairs(growing, p) + (s - growing) * size;
}

function chunkedPairs(size: bigint, s: bigint, p: bigint): bigint {
  const fromStart = (tokens: bigint) =>
    (tokens / size) * causalPairs(size, 0n) + causalPairs(tokens % size, 0n);
  return fromStart(p + s) - fromStart(p);
}

function centredPairs(size: bigint, s: bigint): bigint {
  const growing = least(s, size);
  return s + 2n * ((growing * (growing - 1n)) / 2n + (s - growing) * size);
}

function windowedPairs(rules: Rules, s: bigint, p: bigint): bigint {
  const size = BigInt(rules.window.size);
  switch (rules.window.kind) {
    case "sliding":
      return slidingPairs(size, s, p);
    case "chunked":
      return chunkedPairs(size, s, p);
    case "centred":
      return centredPairs(size, s);
    default:
      return causalPairs(s, p);
  }
}

function windowedKeys(rules: Rules, s: bigint, p: bigint): bigint {
  const keys = p + s;
  if (rules.window.kind === "none" || rules.window.kind === "centred") return keys;
  const others = rules.phase === "decode" ? s - 1n : 0n;
  return least(keys, BigInt(rules.window.size) + others);
}

/// Experts that some token uses, if each token chooses evenly and on its own.
function expertsRead(rules: Rules, tokens: bigint): bigint {
  const experts = Number(rules.experts.routed);
  if (experts === 0) return 0n;
  const chosen = Math.min(1, Number(rules.experts.per_token) / experts);
  return BigInt(Math.round(experts * (1 - (1 - chosen) ** Number(tokens))));
}

/// Sets the symbols that depend on batch_size, seq_len and past_len.
export function derive(rules: Rules, values: Values): void {
  const b = values.get("batch_size") ?? 1n;
  const s = values.get("seq_len") ?? 1n;
  const p = values.get("past_len") ?? 0n;
  values.set("visible_keys", p + s);
  values.set("visible_pairs", causalPairs(s, p));
  values.set("windowed_keys", windowedKeys(rules, s, p));
  values.set("windowed_pairs", windowedPairs(rules, s, p));
  values.set(
    "chunk_keys",
    rules.window.kind === "chunked" ? (p % BigInt(rules.window.size)) + s : 0n,
  );
  values.set("experts_read", expertsRead(rules, b * s));
}

/// Sets the element sizes of activations, and of a cache that had their type.
export function setType(dtype: string, cacheFollows: boolean, values: Values): void {
  const bytes = kDtypeBytes[dtype];
  if (bytes === undefined) return;
  values.set("weight_bytes", bytes);
  values.set("activation_bytes", bytes);
  values.set("cast_bytes", bytes < kFloat32Bytes ? bytes : 0n);
  if (cacheFollows) values.set("kv_cache_bytes", bytes);
}
