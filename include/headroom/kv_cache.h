// KV-cache memory beyond the ideal: quantised values with their scales, and the memory that an
// engine reserves. Counted from the graph's cache tensors, sequence by sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// Type of cached values. The last six are ggml's blocks of 32 values of one vector with a scale
/// (and a minimum), which llama.cpp accepts as --cache-type-k and --cache-type-v.
enum class KvType {
  float32,
  float16,
  bfloat16,
  float8,
  int8,
  int4,
  int2,
  q8_0,
  q5_1,
  q5_0,
  q4_1,
  q4_0,
  iq4_nl,
};

/// Name and layout of a type.
struct KvTypeInfo {
  KvType type;
  std::string_view name;
  std::int64_t block_values;  ///< values stored in `block_bytes`
  std::int64_t block_bytes;
  DType counted_as;  ///< for traffic and time, which count whole bytes per element
};

[[nodiscard]] std::span<const KvTypeInfo> kv_types() noexcept;
[[nodiscard]] const KvTypeInfo& info(KvType type) noexcept;
/// The cache type that stores values as `dtype`.
[[nodiscard]] KvType kv_type(DType dtype) noexcept;
/// Returns whether `type` is a ggml block, which contains its scales.
[[nodiscard]] bool is_block_type(KvType type) noexcept;

/// Scales stored in addition to the values.
enum class KvScales {
  none,
  /// One float32 for the keys and one for the values of a layer, as vLLM's k_scale and v_scale.
  tensor,
  /// One float16 per token, head and key or value; integers add a zero point.
  token_head,
  /// A float16 scale and zero point per 32 values of a vector (FlexGen, arXiv 2303.06865,
  /// section 4.2, with KIVI's group size).
  group,
  /// KIVI (arXiv 2402.02750, algorithm 1): keys per channel over 32 tokens, values per token over
  /// 32 channels, a float16 scale and zero point each; the last tokens stay in the activations'
  /// type.
  kivi,
};

[[nodiscard]] std::string_view name_of(KvScales scales) noexcept;

/// Cache allocation policy of an engine.
enum class KvPolicy {
  ideal,
  paged,
  hf_dynamic,
  hf_static,
  vllm,
  sglang,
  tensorrt_llm,
  llama_cpp,
  llama_cpp_swa_full,
};

/// Policy for sliding-window layers.
enum class KvWindows {
  honoured,  ///< caches only the window's keys
  by_model,  ///< honoured for the models whose windows the engine supports, ignored for others
  ignored,   ///< caches all keys
  unknown,   ///< undocumented: an error
};

/// Rule and source of a policy.
struct KvPolicyInfo {
  KvPolicy policy;
  std::string_view name;
  KvWindows windows;
  std::int64_t block;  ///< tokens per block; 1: no blocks
  std::string_view rule;
  std::string_view source;
};

[[nodiscard]] std::span<const KvPolicyInfo> kv_policies() noexcept;
[[nodiscard]] const KvPolicyInfo& info(KvPolicy policy) noexcept;

/// Choices of how to count a KV-cache.
struct KvCacheRequest {
  std::optional<KvType> type;  ///< default: the workload's
  KvScales scales = KvScales::none;
  KvPolicy policy = KvPolicy::ideal;
  std::optional<std::int64_t> block;     ///< default: the policy's
  std::optional<std::int64_t> capacity;  ///< tokens reserved per sequence; default: its length
};

/// Growth of a layer's cached tokens.
enum class KvGrowth { full, windowed, encoder, constant };

[[nodiscard]] std::string_view name_of(KvGrowth growth) noexcept;

/// Cache of one kind of layer. Tokens are per sequence and layer, 0 for a constant state; bytes
/// cover all sequences and layers.
struct KvCacheRow {
  std::string path;
  KvGrowth growth = KvGrowth::full;
  Integer layers = 0;
  Integer token_bytes = 0;  ///< per token; 0 where tokens differ
  Integer used_tokens = 0;
  Integer reserved_tokens = 0;
  Integer used_bytes = 0;
  Integer reserved_bytes = 0;
};

/// A whole KV-cache. A step reads `used_bytes`, scales included; the policy allocates
/// `reserved_bytes`.
struct KvCacheUse {
  KvType type = KvType::float32;
  KvScales scales = KvScales::none;
  KvPolicy policy = KvPolicy::ideal;
  std::optional<std::int64_t> block;     ///< for policies with blocks
  std::optional<std::int64_t> capacity;  ///< for policies that reserve a length
  Integer used_bytes = 0;
  Integer scale_bytes = 0;  ///< the part of used_bytes in scales and zero points
  Integer reserved_bytes = 0;
  Integer bytes_per_token = 0;  ///< growth of used_bytes per token of one sequence
  std::vector<KvCacheRow> rows;
};

/// Returns whether every value has the bytes of a DType and no scales, so that the graph's
/// polynomials hold.
[[nodiscard]] bool has_plain_values(const KvCacheUse& use) noexcept;

/// Returns whether the request sets anything but the type.
[[nodiscard]] bool asks_for_policy(const KvCacheRequest& request) noexcept;

/// The workload's DType for `request`; empty if the request sets no type.
[[nodiscard]] std::optional<DType> counted_type(const KvCacheRequest& request) noexcept;

/// Counts the KV-cache of `graph`, built from `spec`, under `workload`; empty without a cache.
/// Throws Error{invalid_input} for a contradictory request, or if the policy has no documented rule
/// for one of the model's layers.
[[nodiscard]] std::optional<KvCacheUse> kv_cache_use(const ModelSpec& spec, const Graph& graph,
                                                     const Workload& workload,
                                                     const KvCacheRequest& request);

}  // namespace headroom
