// Workload: phase, sizes and types of one run. Every field has a stated default; none is inferred
// later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom {

enum class Phase {
  prefill,  ///< one forward pass over all new tokens
  decode,   ///< one step of `seq_len` tokens after `past_len` tokens in the KV-cache
  train,    ///< forward and backward pass, with dropout, without a KV-cache
};
/// Types of activations (16 and 32 bits), KV-cache (8 and more) and GEMMs (all). float4 is MXFP4
/// and NVFP4, which a device computes at one rate.
enum class DType { float32, float16, bfloat16, float8, int8, float4, int4 };
enum class WeightType;  // weight_storage.h
enum class AttentionImplementation {
  eager,  ///< scores, softmax and context in sequence, over all s × t pairs
  fused,  ///< one kernel that never stores s × t scores and skips masked pairs
};
/// Decode algorithm of multi-head latent attention (arXiv 2405.04434).
enum class LatentAttention {
  absorbed,  ///< attention in the latent space: the KV-cache stores latent vectors
  naive,     ///< the KV-cache stores expanded keys and values of every head, as in Hugging Face
};
/// Activation recomputation: tensors saved for the backward pass (arXiv 2205.05198).
enum class Recompute {
  none,       ///< saves every tensor that the backward pass needs
  selective,  ///< recomputes the attention core (in_attention_core), saves all other tensors
  full,       ///< saves each layer's input and recomputes the layer
};
/// Kernels of a training step. Decides the tensors saved for the backward pass.
enum class Kernels {
  reference,  ///< as the family's Hugging Face code runs in eager PyTorch
  fused,      ///< one kernel per operator of the graph
};

/// One run of a model, fully specified.
struct Workload {
  Phase phase = Phase::prefill;
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 128;      ///< new tokens per sequence; usually 1 in decode
  std::int64_t enc_seq_len = 128;  ///< tokens read by an encoder-decoder's encoder
  std::int64_t past_len = 0;       ///< tokens in the KV-cache
  DType dtype = DType::float32;    ///< of activations
  DType kv_dtype = DType::float32;
  AttentionImplementation attention = AttentionImplementation::eager;
  LatentAttention latent = LatentAttention::absorbed;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
  /// Bytes per dropout-mask element: 1 as on CUDA. (PyTorch's CPU dropout stores the mask in the
  /// activation's type.)
  std::int64_t mask_bytes = 1;
  /// Type that the weights are converted to; empty: as stored.
  std::optional<WeightType> weights{};
  /// Type of the layers' GEMMs (is_layer_gemm); empty: `dtype`.
  std::optional<DType> arithmetic{};

  [[nodiscard]] DType arithmetic_type() const noexcept { return arithmetic.value_or(dtype); }
};

/// A workload with unset fields, which `resolve` fills in.
struct WorkloadRequest {
  Phase phase = Phase::prefill;
  std::int64_t batch_size = 1;
  std::optional<std::int64_t> seq_len;      ///< default: 128, 1 in decode, or the image's tokens
  std::optional<std::int64_t> enc_seq_len;  ///< default: 128, or the window of a speech encoder
  std::optional<std::int64_t> past_len;     ///< default: 0, or 127 in decode
  /// Of activations: 16 or 32 bits. Default: the config's torch_dtype if it has 16 bits, else
  /// float32.
  std::optional<DType> dtype;
  std::optional<DType> kv_dtype;      ///< default: the config's, else `dtype`
  std::optional<WeightType> weights;  ///< default: as stored
  /// Of the layers' GEMMs. Default: what the config states of its stored weights, else `dtype`.
  std::optional<DType> arithmetic;
  std::optional<AttentionImplementation> attention;  ///< default: eager
  LatentAttention latent = LatentAttention::absorbed;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
};

/// Fills in the defaults of `request` for `spec`. Throws Error{invalid_input} for a request that
/// the model cannot run: sizes below 1, a decode phase without a decoder, a length for an image
/// model, …
[[nodiscard]] Workload resolve(const WorkloadRequest& request, const ModelSpec& spec);

/// Caveats for the reader of the figures: positions beyond the trained context, …
[[nodiscard]] std::vector<std::string> notes_on(const Workload& workload, const ModelSpec& spec);

/// Caveats about the config: keys that no reader knows, sizes that the class fills in, and weights
/// without operators. `notes_on` has them too.
[[nodiscard]] std::vector<std::string> notes_on_config(const ModelSpec& spec);

/// Caveats about the tensors saved for the backward pass.
[[nodiscard]] std::vector<std::string> notes_on_saved_tensors(const Workload& workload,
                                                              const ModelSpec& spec);

/// The config's torch_dtype, if it is a type of 16 bits.
[[nodiscard]] std::optional<DType> stored_16_bit_type(const ModelSpec& spec) noexcept;

/// The type in which the config says that its quantised layers compute; empty: as the activations.
[[nodiscard]] std::optional<DType> stated_arithmetic(const ModelSpec& spec) noexcept;
/// The type of the KV-cache that the config states, such as "kv_cache_quant_algo": "FP8"; empty if
/// it states none, or one of fewer than 8 bits.
[[nodiscard]] std::optional<DType> stated_kv_dtype(const ModelSpec& spec) noexcept;

/// Bytes per element. Types of 4 bits, in which only GEMMs compute, have 1.
[[nodiscard]] std::int64_t bytes_of(DType dtype) noexcept;

/// The word for each value, on the command line, on screen and in JSON.
[[nodiscard]] std::string_view name_of(Phase phase) noexcept;
[[nodiscard]] std::string_view name_of(DType dtype) noexcept;
[[nodiscard]] std::string_view name_of(AttentionImplementation attention) noexcept;
[[nodiscard]] std::string_view name_of(LatentAttention latent) noexcept;
[[nodiscard]] std::string_view name_of(Recompute recompute) noexcept;
[[nodiscard]] std::string_view name_of(Kernels kernels) noexcept;

}  // namespace headroom
