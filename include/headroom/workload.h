// Workload: what is asked of a model. Every field has a stated default; none is guessed later.
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
  decode,   ///< new tokens one by one, after `past_len` tokens in the KV-cache
  train,    ///< forward and backward, with dropout and without a KV-cache
};
enum class DType { float32, float16, bfloat16, float8, int8 };
enum class AttentionImplementation {
  eager,  ///< scores, softmax and context one after the other; all s × t pairs
  fused,  ///< one kernel that never holds s × t, and skips what a causal mask hides
};
/// How multi-head latent attention (arXiv 2405.04434) decodes.
enum class LatentAttention {
  absorbed,  ///< attention in the latent space: the KV-cache holds latent vectors
  naive,     ///< expanded keys and values of every head are held, as Hugging Face's code does
};
/// What the forward pass keeps for the backward pass (arXiv 2205.05198).
enum class Recompute {
  none,       ///< every tensor that the backward needs
  selective,  ///< all but the attention core (scores to context), which is computed again
  full,       ///< only each layer's input; the layer is computed again
};
/// Which kernels a training step is made of: decides what is saved for backward.
enum class Kernels {
  reference,  ///< operator by operator, as the family's Hugging Face code runs in eager PyTorch
  fused,      ///< every operator of the graph is one kernel
};

struct Workload {
  Phase phase = Phase::prefill;
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 128;      ///< new tokens of each sequence; 1 is the usual decode step
  std::int64_t enc_seq_len = 128;  ///< tokens that an encoder-decoder's encoder reads
  std::int64_t past_len = 0;       ///< tokens already in the KV-cache
  DType dtype = DType::float32;    ///< of weights and activations
  DType kv_dtype = DType::float32;
  AttentionImplementation attention = AttentionImplementation::eager;
  LatentAttention latent = LatentAttention::absorbed;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
  /// Bytes of a dropout-mask element: 1, as CUDA keeps it. (PyTorch's CPU dropout keeps the mask in
  /// the activation's type.)
  std::int64_t mask_bytes = 1;
};

/// A workload of which some fields are not said.
struct WorkloadRequest {
  Phase phase = Phase::prefill;
  std::int64_t batch_size = 1;
  std::optional<std::int64_t> seq_len;      ///< else 128, 1 in decode, or what the image gives
  std::optional<std::int64_t> enc_seq_len;  ///< else 128
  std::optional<std::int64_t> past_len;     ///< else 0, or 127 in decode
  DType dtype = DType::float32;
  std::optional<DType> kv_dtype;  ///< else `dtype`
  AttentionImplementation attention = AttentionImplementation::eager;
  LatentAttention latent = LatentAttention::absorbed;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
};

/// The workload that `request` means for `spec`. Throws Error{invalid_input} when it cannot be
/// asked of that model: sizes below 1, a decode phase without a decoder, a length for an image
/// model, …
[[nodiscard]] Workload resolve(const WorkloadRequest& request, const ModelSpec& spec);

/// What a reader of the figures should know: positions beyond the trained ones, …
[[nodiscard]] std::vector<std::string> notes_on(const Workload& workload, const ModelSpec& spec);

/// The same about what a training step keeps for its backward pass.
[[nodiscard]] std::vector<std::string> notes_on_saved_tensors(const Workload& workload,
                                                              const ModelSpec& spec);

/// Bytes of one element.
[[nodiscard]] std::int64_t bytes_of(DType dtype) noexcept;

/// The word for each value, the same on the command line, on screen and in JSON.
[[nodiscard]] std::string_view name_of(Phase phase) noexcept;
[[nodiscard]] std::string_view name_of(DType dtype) noexcept;
[[nodiscard]] std::string_view name_of(AttentionImplementation attention) noexcept;
[[nodiscard]] std::string_view name_of(LatentAttention latent) noexcept;
[[nodiscard]] std::string_view name_of(Recompute recompute) noexcept;
[[nodiscard]] std::string_view name_of(Kernels kernels) noexcept;

}  // namespace headroom
