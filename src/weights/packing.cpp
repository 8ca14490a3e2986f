#include "packing.h"

#include <array>
#include <span>

namespace headroom::detail {
namespace {

struct Ending {
  std::string_view text;
  Packing packing;
  PieceRole role;
};

using enum Packing;
using enum PieceRole;

// The first matching ending counts.
constexpr std::array kWeightEndings{
    Ending{".attn_k_b.weight", split_latent, values},
    Ending{".attn_v_b.weight", split_latent, companion},
};
constexpr std::array kEndings{
    Ending{".qweight", gptq_or_awq, values},
    Ending{".qzeros", gptq_or_awq, companion},
    Ending{".scales", gptq_or_awq, companion},
    Ending{".g_idx", gptq_or_awq, companion},
    Ending{".weight_packed", compressed_tensors, values},
    Ending{".weight_shape", compressed_tensors, shape},
    Ending{".weight_zero_point", compressed_tensors, companion},
    Ending{".weight_g_idx", compressed_tensors, companion},
    Ending{".weight_global_scale", compressed_tensors, companion},
    Ending{".input_global_scale", compressed_tensors, activations},
    Ending{".weight.absmax", bitsandbytes_4bit, companion},
    Ending{".weight.quant_map", bitsandbytes_4bit, companion},
    Ending{".weight.nested_absmax", bitsandbytes_4bit, companion},
    Ending{".weight.nested_quant_map", bitsandbytes_4bit, companion},
    Ending{".weight.quant_state.bitsandbytes__nf4", bitsandbytes_4bit, state},
    Ending{".weight.quant_state.bitsandbytes__fp4", bitsandbytes_4bit, state},
    Ending{".SCB", bitsandbytes_8bit, companion},
    Ending{".weight_format", bitsandbytes_8bit, companion},
    Ending{".weight_scale_inv", scaled, companion},
    Ending{".weight_scale", scaled, companion},
    Ending{".weight_scale_2", scaled, companion},
    Ending{".input_scale", scaled, activations},
    Ending{".input_zero_point", scaled, activations},
    Ending{".activation_scale", scaled, activations},
    Ending{".output_scale", scaled, activations},
    Ending{".pre_quant_scale", scaled, companion},
    Ending{".biases", mlx, companion},
    Ending{"._weight_qdata", torchao, values},
    Ending{"._weight_scale", torchao, companion},
    Ending{"._weight_scale_and_zero", torchao, companion},
    Ending{"._weight_zero_point", torchao, companion},
    Ending{"._weight_per_tensor_scale", torchao, companion},
    Ending{"._weight_act_per_tensor_scale", torchao, companion},
    Ending{"._weight_act_pre_scale", torchao, companion},
    Ending{".W_q", hqq, values},
    Ending{".shape", hqq, shape},
    Ending{".nbits", hqq, companion},
    Ending{".group_size", hqq, companion},
    Ending{".scale", hqq, companion},
    Ending{".zero", hqq, companion},
    Ending{".axis", hqq, companion},
    Ending{".packing", hqq, companion},
    Ending{".unpack_view_dtype", hqq, companion},
    Ending{".view_as_float", hqq, companion},
    Ending{".quant_scale", hqq, companion},
    Ending{".quant_zero", hqq, companion},
    Ending{".compute_dtype", hqq, companion},
    Ending{".offload_meta", hqq, companion},
    Ending{".encoded_state_dict", hqq, companion},
    Ending{".stores_quant_config", hqq, companion},
    Ending{".channel_wise", hqq, companion},
    Ending{".optimize", hqq, companion},
    Ending{".round_zero", hqq, companion},
    Ending{"_blocks", mxfp4, values},
    Ending{"_scales", mxfp4, companion},
};

std::optional<Piece> piece_among(std::span<const Ending> endings, std::string_view name) {
  for (const Ending& ending : endings) {
    if (!name.ends_with(ending.text)) continue;
    return Piece{ending.packing, ending.role, name.substr(0, name.size() - ending.text.size()),
                 ending.text.substr(1)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Piece> piece_of(std::string_view name) {
  if (name.ends_with("_b.weight")) return piece_among(kWeightEndings, name);
  if (name.ends_with(".weight")) return std::nullopt;  // most tensors
  return piece_among(kEndings, name);
}

}  // namespace headroom::detail
