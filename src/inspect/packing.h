// The ways in which a weight is stored as several tensors: packed integers, scales, zero points.
// Sources: GPTQ, AutoGPTQ's QuantLinear (qweight, qzeros, scales, g_idx); AWQ, AutoAWQ's WQLinear;
// bitsandbytes, QuantState.as_dict in bitsandbytes/functional.py; compressed-tensors,
// github.com/vllm-project/compressed-tensors; FP8 with block scales, DeepSeek-V3's
// inference/kernel.py; MXFP4, convert_moe_packed_tensors in transformers/integrations/mxfp4.py;
// DeepSeek's expansion of latent vectors in halves, convert_hf_to_gguf.py of llama.cpp.
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
  scaled,              ///< X.weight, as it is, with X.weight_scale or X.weight_scale_inv
  mxfp4,               ///< X_blocks with X_scales
  split_latent,        ///< X.attn_k_b.weight with X.attn_v_b.weight, for X.attn_kv_b.weight
};

/// What one tensor is for the weight that it is a piece of.
enum class PieceRole {
  values,     ///< the packed values themselves
  shape,      ///< holds the weight's shape
  state,      ///< holds the weight's shape, among other things
  companion,  ///< scales, zero points, the order of inputs
};

struct Piece {
  Packing packing = Packing::scaled;
  PieceRole role = PieceRole::companion;
  std::string_view base;   ///< what the pieces of one weight have in common
  std::string_view label;  ///< which piece it is: "qweight"
};

/// What the name of a tensor says that it could be a piece of. Whether it is one depends on the
/// others: a weight is packed only where its values are there.
[[nodiscard]] std::optional<Piece> piece_of(std::string_view name);

}  // namespace headroom::detail
