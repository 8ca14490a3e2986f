// Packings: ways to store one weight as several tensors (packed integers, scales, zero points).
// Sources: GPTQ, AutoGPTQ's QuantLinear (qweight, qzeros, scales, g_idx); AWQ, AutoAWQ's WQLinear;
// bitsandbytes, QuantState.as_dict in bitsandbytes/functional.py; compressed-tensors,
// github.com/vllm-project/compressed-tensors; FP8 with block scales, DeepSeek-V3's
// inference/kernel.py; MXFP4, convert_moe_packed_tensors in transformers/integrations/mxfp4.py;
// FP8 and NVFP4 of NVIDIA ModelOpt, modelopt/torch/export/quant_utils.py;
// MLX, torchao and HQQ, see unpack_integers.h;
// DeepSeek's latent up-projection split into K and V, convert_hf_to_gguf.py of llama.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::detail {

enum class Packing {
  gptq_or_awq,         ///< X.qweight with X.scales, X.qzeros and perhaps X.g_idx
  compressed_tensors,  ///< X.weight_packed with X.weight_scale and perhaps X.weight_shape
  bitsandbytes_4bit,   ///< X.weight with X.weight.absmax, X.weight.quant_state.…
  bitsandbytes_8bit,   ///< X.weight with X.SCB
  scaled,              ///< X.weight with X.weight_scale or X.weight_scale_inv
  mxfp4,               ///< X_blocks with X_scales
  mlx,                 ///< X.weight with X.scales and perhaps X.biases
  torchao,             ///< X._weight_qdata with X._weight_scale
  hqq,                 ///< X.W_q with X.scale, X.zero and X.shape
  split_latent,        ///< X.attn_k_b.weight with X.attn_v_b.weight, for X.attn_kv_b.weight
};

/// Role of a stored tensor in its weight.
enum class PieceRole {
  values,       ///< the packed values themselves
  shape,        ///< the weight's shape
  state,        ///< the weight's shape and other metadata
  companion,    ///< scales, zero points, the order of inputs
  activations,  ///< scales and zero points of inputs or outputs, which leave the weight as it is
};

struct Piece {
  Packing packing = Packing::scaled;
  PieceRole role = PieceRole::companion;
  std::string_view base;   ///< common prefix of the pieces of one weight
  std::string_view label;  ///< the rest of the name: "qweight"
};

/// The piece that a tensor of this name may be. It is one only if the packed values of its base are
/// there, too.
[[nodiscard]] std::optional<Piece> piece_of(std::string_view name);

}  // namespace headroom::detail
