// Storage: bytes of a model's weights by their formats, as its config states or its files hold
// them, and of its KV-cache by type and by the engine that allocates it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/expr.h"
#include "headroom/graph.h"
#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom {

/// `spec` with its weights converted to `form`.
[[nodiscard]] ModelSpec stored_as(ModelSpec spec, const WeightForm& form);

/// Bytes of one weight, all its copies together.
struct StoredWeight {
  Integer bytes = 0;
  /// Bytes by copy, where the copies differ (first and last layers in 16 bits); empty where all are
  /// equal.
  std::vector<Integer> bytes_of_copy{};
};

/// Weights that share a format, for display.
struct StorageGroup {
  std::string format;      ///< "FP8, a scale per 128 × 128", "BF16"
  Integer parameters = 0;  ///< buffers included
  Integer bytes = 0;
};

/// All weights of a graph as they are stored.
struct StoredWeights {
  std::vector<StoredWeight> weights;   ///< by WeightId
  std::vector<StorageGroup> groups;    ///< by descending bytes
  std::string origin;                  ///< "config.json, quantization_config: fp8", "GGUF tensors"
  Integer bytes = 0;                   ///< sum of `weights`, parameters and buffers
  std::vector<StorageGroup> extras{};  ///< tensors of the files that are no weights, by kind
  std::vector<std::string> notes{};    ///< what could not be taken from files or config
};

/// The weights of `graph` as `spec.storage` stores them. Throws Error{overflow}.
[[nodiscard]] StoredWeights stored_weights(const ModelSpec& spec, const Graph& graph);

/// The weights of `graph` as the files of `model` hold them, to the byte: weights and extras sum to
/// the files' tensors. Without files, or with files that lack a weight of the graph, those of its
/// spec; a note names the latter. Throws Error{invalid_input} if the files cannot be read.
[[nodiscard]] StoredWeights stored_weights(const Model& model, const Graph& graph);

/// `model` with the types of its files as the rules of its spec, so that stored_weights(spec,
/// graph) holds for any graph of it. Rules of a packed format (GPTQ, FP8 with scales) stay those of
/// the config. A note says where files and rules differ. Without files the model is as it was.
/// Throws Error{invalid_input} if the files cannot be read.
[[nodiscard]] Model with_file_types(Model model);

enum class InferenceRecipe {
  w8a8,        ///< 8-bit integer weights and GEMMs
  w8a8_fp8,    ///< FP8 weights and GEMMs
  w8a8_mxfp8,  ///< MXFP8 weights and GEMMs
  w8a16,       ///< 8-bit integer weights, 16-bit GEMMs
  w4a16,       ///< 4-bit integer weights, 16-bit GEMMs
  w4a4,        ///< 4-bit integer weights and GEMMs
  w4a4_mxfp4,  ///< MXFP4 weights and GEMMs
  w4a4_nvfp4,  ///< NVFP4 weights and GEMMs
};

/// A recipe's types. Activations between operators have 16 bits in all of them.
struct InferenceRecipeInfo {
  InferenceRecipe recipe;
  std::string_view name;
  WeightForm weights;
  std::optional<DType> arithmetic;  ///< of the layers' GEMMs; empty: that of the activations
  std::string_view source;
};

/// All recipes, in order of the enumeration.
[[nodiscard]] const std::array<InferenceRecipeInfo, 8>& inference_recipes() noexcept;
[[nodiscard]] const InferenceRecipeInfo& info(InferenceRecipe recipe) noexcept;

/// `graph` with the stored bytes of every weight. `stored` must come from `stored_weights`.
[[nodiscard]] Graph with_stored_bytes(Graph graph, const StoredWeights& stored);

/// The graph of `spec` with its weights as they are stored. Throws as build_graph does.
[[nodiscard]] Graph build_stored_graph(const ModelSpec& spec, const GraphOptions& options);

/// MXFP8 (OCP Microscaling Formats 1.0, section 5.1): FP8 (E4M3) with an E8M0 scale per 32 values
/// of a row, 8.25 bits per value.
inline constexpr GroupFormat kMxfp8{GroupCodes::float8, {1, 32}, GroupScales::bits8, false};

/// Returns whether matrices of `spec` are stored in MXFP8.
[[nodiscard]] bool stores_mxfp8(const ModelSpec& spec);

/// `spec` with its weights converted to `form`; unchanged without one.
[[nodiscard]] ModelSpec converted(ModelSpec spec, const std::optional<WeightForm>& form);

/// "int4", "fp8-128x128-s32"; without a form "stored", as the files store them.
[[nodiscard]] std::string name_of(const std::optional<WeightForm>& form);

// KV-cache memory beyond the ideal: quantised keys and values with their scales, the memory that an
// engine holds in the steady state, and the memory that it reserves. Counted from the graph's cache
// tensors, sequence by sequence.

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
  /// One float16 per token, head and key or value; integers add a zero point. vLLM: one float32,
  /// without a zero point.
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
  vllm_0_25,
  sglang,
  tensorrt_llm,
  tensorrt_llm_windows,
  llama_cpp,
  llama_cpp_swa_full,
  llama_cpp_b5331,
};

/// Policy for sliding-window layers.
enum class KvWindows {
  honoured,  ///< caches only the window's keys
  by_model,  ///< honoured for the models whose windows the engine supports, ignored for others
  ignored,   ///< caches all keys
};

/// Rule and source of a policy.
struct KvPolicyInfo {
  KvPolicy policy;
  std::string_view name;
  KvWindows windows;
  std::int64_t block;           ///< tokens per block; 1: no blocks
  std::int64_t batched_tokens;  ///< default of KvCacheRequest::batched_tokens; 0: no effect
  std::string_view versions;    ///< of the engine that the rule is for; empty: all that were read
  std::string_view rule;        ///< of the reservation
  std::string_view source;      ///< with the version that was read
};

[[nodiscard]] std::span<const KvPolicyInfo> kv_policies() noexcept;
[[nodiscard]] const KvPolicyInfo& info(KvPolicy policy) noexcept;

/// Choices of how to count a KV-cache.
struct KvCacheRequest {
  std::optional<KvType> key_type;    ///< default: the workload's; also of MLA's latent vectors
  std::optional<KvType> value_type;  ///< default: the workload's
  KvScales scales = KvScales::none;
  KvPolicy policy = KvPolicy::ideal;
  std::optional<std::int64_t> block;     ///< default: the policy's
  std::optional<std::int64_t> capacity;  ///< tokens reserved per sequence; default: its length
  /// Most tokens that one pass adds to the cache: vLLM's max_num_batched_tokens, llama.cpp's
  /// n_ubatch. Default: the policy's.
  std::optional<std::int64_t> batched_tokens;
  /// llama.cpp: sequences that share one cache (n_seq_max with --kv-unified). Default: every
  /// sequence has a cache of its own.
  std::optional<std::int64_t> slots;
  /// vLLM: prefix caching of recurrent layers (mamba_cache_mode "align"), which hold a second state
  /// per sequence.
  bool prefix_caching = false;
  /// vLLM: tokens that a drafter proposes per step (num_speculative_tokens). A recurrent layer
  /// holds one more state for each, and its convolution one more input. Default: 0.
  std::optional<std::int64_t> speculative_tokens;
  /// vLLM: layers of a drafter with the model's full attention, such as those of multi-token
  /// prediction. Default: 0.
  std::optional<std::int64_t> drafter_layers;
  /// vLLM: stages of its pipeline, one batch in flight each. `plan` and `fit` set the plan's.
  std::int64_t pipeline_stages = 1;
};

/// Sets the type of keys and values.
void set_type(KvCacheRequest& request, KvType type) noexcept;

/// Types of cached keys and values; empty: the workload's.
struct KvTypes {
  std::optional<KvType> key;  ///< also of MLA's latent vectors
  std::optional<KvType> value;
  bool operator==(const KvTypes&) const = default;
};

/// Sets the types of keys and values.
void set_types(KvCacheRequest& request, const KvTypes& types) noexcept;

/// Growth of a layer's cached tokens; `compressed`: one entry per several tokens.
enum class KvGrowth { full, windowed, compressed, encoder, constant };

[[nodiscard]] std::string_view name_of(KvGrowth growth) noexcept;

/// Cache of one kind of layer. Tokens are per layer and sequence (per layer in a cache that
/// sequences share), 0 for a constant state; bytes cover all sequences and layers.
struct KvCacheRow {
  std::string path;
  KvGrowth growth = KvGrowth::full;
  Integer layers = 0;
  Integer token_bytes = 0;  ///< per token; 0 where tokens differ
  Integer used_tokens = 0;
  Integer steady_tokens = 0;
  Integer reserved_tokens = 0;
  Integer used_bytes = 0;
  Integer steady_bytes = 0;
  Integer reserved_bytes = 0;
};

/// A whole KV-cache, in three figures. A step reads `used_bytes`, scales included. The engine holds
/// `steady_bytes` while it decodes at this length, and needs room for `reserved_bytes` to admit
/// sequences of this length: passes over a prompt may hold more than the steady state.
struct KvCacheUse {
  KvType key_type = KvType::float32;
  KvType value_type = KvType::float32;
  KvScales scales = KvScales::none;
  KvPolicy policy = KvPolicy::ideal;
  std::optional<std::int64_t> block;           ///< for policies with blocks
  std::optional<std::int64_t> capacity;        ///< for policies that reserve a length
  std::optional<std::int64_t> batched_tokens;  ///< for policies that it concerns
  std::optional<std::int64_t> slots;           ///< of a cache that sequences share
  bool prefix_caching = false;                 ///< of recurrent layers
  std::optional<std::int64_t> speculative_tokens;
  std::optional<std::int64_t> drafter_layers;  ///< in the steady state and the reservation
  Integer used_bytes = 0;
  Integer scale_bytes = 0;  ///< the part of used_bytes in scales and zero points
  Integer steady_bytes = 0;
  Integer reserved_bytes = 0;
  Integer bytes_per_token = 0;  ///< that the next token of one sequence adds to used_bytes
  std::vector<KvCacheRow> rows;
};

/// Name of the stored types: "q8_0", or "k=q8_0,v=float16" where they differ.
[[nodiscard]] std::string name_of_types(KvType key, KvType value);

/// Returns whether keys and values have equal whole bytes per element and no scales, so that the
/// graph's polynomials hold.
[[nodiscard]] bool has_plain_values(const KvCacheUse& use) noexcept;

/// Returns whether the request sets anything but the type.
[[nodiscard]] bool asks_for_policy(const KvCacheRequest& request) noexcept;

/// The workload's DType for `request`, which traffic and time count: the wider one of keys and
/// values, `dtype` where no type is set. Empty if the request sets no type.
[[nodiscard]] std::optional<DType> counted_type(const KvCacheRequest& request,
                                                DType dtype) noexcept;

/// Counts the KV-cache of `graph`, built from `spec`, under `workload`; empty without a cache.
/// Throws Error{invalid_input} for a contradictory request, or if the policy has no documented rule
/// for one of the model's layers.
[[nodiscard]] std::optional<KvCacheUse> kv_cache_use(const ModelSpec& spec, const Graph& graph,
                                                     const Workload& workload,
                                                     const KvCacheRequest& request);

/// Caveats for the reader of a KV-cache's figures.
[[nodiscard]] std::vector<std::string> notes_on(const KvCacheUse& use, const Workload& workload);

}  // namespace headroom
