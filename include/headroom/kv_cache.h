// What a KV-cache takes beyond the ideal: values in few bits with their scales, and the room that
// an engine reserves for them. Counted from the graph's own cache tensors, sequence by sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// How values are stored. The last six are ggml's blocks of 32 values of one vector with a scale
/// (and a minimum), which llama.cpp takes as --cache-type-k and --cache-type-v.
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

struct KvTypeInfo {
  KvType type;
  std::string_view name;
  std::int64_t block_values;  ///< that take `block_bytes` together
  std::int64_t block_bytes;
  DType counted_as;  ///< in traffic and time, which know whole bytes an element
};

[[nodiscard]] std::span<const KvTypeInfo> kv_types() noexcept;
[[nodiscard]] const KvTypeInfo& info(KvType type) noexcept;
/// The same type as the KV-cache has where nothing else is asked for.
[[nodiscard]] KvType kv_type(DType dtype) noexcept;
/// Whether the type is one of ggml's blocks, which have their scales inside.
[[nodiscard]] bool is_block_type(KvType type) noexcept;

/// Scales that are stored beside the values.
enum class KvScales {
  none,
  /// A float32 for the keys and one for the values of a layer, as vLLM's k_scale and v_scale.
  tensor,
  /// A float16 for each token's key and value of each head, and a zero point where values are
  /// integers.
  token_head,
  /// A float16 scale and zero point for every 32 values of a vector (FlexGen, arXiv 2303.06865,
  /// section 4.2, with the group size of KIVI).
  group,
  /// KIVI (arXiv 2402.02750, algorithm 1): keys by channel over 32 tokens, values by token over 32
  /// channels, a float16 scale and zero point each; the last tokens wait in the activations' type.
  kivi,
};

[[nodiscard]] std::string_view name_of(KvScales scales) noexcept;

/// How much an engine reserves.
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

/// What a policy does with layers that a window limits.
enum class KvWindows {
  honoured,  ///< the window's keys only
  by_model,  ///< so for the models that the engine knows it of, everything for others
  ignored,   ///< everything
  unknown,   ///< the rule is not in the table: refused
};

struct KvPolicyInfo {
  KvPolicy policy;
  std::string_view name;
  KvWindows windows;
  std::int64_t block;  ///< tokens that are reserved together; 1 where they are not
  std::string_view rule;
  std::string_view source;
};

[[nodiscard]] std::span<const KvPolicyInfo> kv_policies() noexcept;
[[nodiscard]] const KvPolicyInfo& info(KvPolicy policy) noexcept;

struct KvCacheRequest {
  std::optional<KvType> type;  ///< else the workload's
  KvScales scales = KvScales::none;
  KvPolicy policy = KvPolicy::ideal;
  std::optional<std::int64_t> block;     ///< else the policy's own
  std::optional<std::int64_t> capacity;  ///< tokens that a sequence has room for; else its own
};

/// With what the tokens that a layer holds grow.
enum class KvGrowth { full, windowed, encoder, constant };

[[nodiscard]] std::string_view name_of(KvGrowth growth) noexcept;

/// The cache of the layers of one kind. Tokens are those of one sequence in one layer; 0 where the
/// state is constant. Bytes are those of all sequences and layers.
struct KvCacheRow {
  std::string path;
  KvGrowth growth = KvGrowth::full;
  Integer layers = 0;
  Integer token_bytes = 0;  ///< of one token, where tokens take all the same
  Integer used_tokens = 0;
  Integer reserved_tokens = 0;
  Integer used_bytes = 0;
  Integer reserved_bytes = 0;
};

/// A whole KV-cache. `used_bytes` is the least that a step needs, with the scales of what it needs;
/// `reserved_bytes` is what the policy holds for it.
struct KvCacheUse {
  KvType type = KvType::float32;
  KvScales scales = KvScales::none;
  KvPolicy policy = KvPolicy::ideal;
  std::optional<std::int64_t> block;     ///< where the policy has blocks
  std::optional<std::int64_t> capacity;  ///< where the policy reserves for a length
  Integer used_bytes = 0;
  Integer scale_bytes = 0;  ///< of them, those of scales and zero points
  Integer reserved_bytes = 0;
  Integer bytes_per_token = 0;  ///< what one more token of one sequence adds to the used bytes
  std::vector<KvCacheRow> rows;
};

/// Whether every value takes the bytes of a DType and nothing stands beside it, so that the cache
/// is what the graph's polynomials say.
[[nodiscard]] bool has_plain_values(const KvCacheUse& use) noexcept;

/// Whether the request says anything but the type.
[[nodiscard]] bool asks_for_policy(const KvCacheRequest& request) noexcept;

/// The DType that a workload counts `request` with; empty when it asks for no type.
[[nodiscard]] std::optional<DType> counted_type(const KvCacheRequest& request) noexcept;

/// The KV-cache of `graph`, built from `spec`, under `workload`; empty where it has none. Throws
/// Error{invalid_input} where the request contradicts itself, or where the policy's rule for one of
/// the model's layers is not known.
[[nodiscard]] std::optional<KvCacheUse> kv_cache_use(const ModelSpec& spec, const Graph& graph,
                                                     const Workload& workload,
                                                     const KvCacheRequest& request);

}  // namespace headroom
