// Linear layers packed as quantisation libraries write them, for tests of stored weights. Shapes
// are those of a layer [out, in]; see src/weights/packing.h for the sources.
#pragma once

#include "inspect/model_folder.h"

namespace headroom::test {

/// Inputs that share a scale.
inline constexpr std::int64_t kGroup = 32;

/// Tensors of the linear layer `base`.
using Packer = std::vector<TensorToWrite> (*)(const std::string& base, std::int64_t out,
                                              std::int64_t in);

/// All tensors of the model of `config`: projections packed, the others of type `others`.
[[nodiscard]] std::vector<TensorToWrite> packed_tensors(const nlohmann::json& config, Packer pack,
                                                        StoredType others);

/// GPTQ with 4 bits and an order of activations.
[[nodiscard]] std::vector<TensorToWrite> gptq(const std::string& base, std::int64_t out,
                                              std::int64_t in);
/// AWQ with 4 bits.
[[nodiscard]] std::vector<TensorToWrite> awq(const std::string& base, std::int64_t out,
                                             std::int64_t in);
[[nodiscard]] std::vector<TensorToWrite> bitsandbytes_8bit(const std::string& base,
                                                           std::int64_t out, std::int64_t in);
/// compressed-tensors with 4 bits, "pack-quantized".
[[nodiscard]] std::vector<TensorToWrite> compressed(const std::string& base, std::int64_t out,
                                                    std::int64_t in);
/// MLX with 4 bits.
[[nodiscard]] std::vector<TensorToWrite> mlx(const std::string& base, std::int64_t out,
                                             std::int64_t in);
/// HQQ with 4 bits, values in bytes and its metadata as tensors.
[[nodiscard]] std::vector<TensorToWrite> hqq(const std::string& base, std::int64_t out,
                                             std::int64_t in);
/// torchao's Int4Tensor, plain packing.
[[nodiscard]] std::vector<TensorToWrite> torchao_int4(const std::string& base, std::int64_t out,
                                                      std::int64_t in);
/// torchao's Int4TilePackedTo4dTensor.
[[nodiscard]] std::vector<TensorToWrite> torchao_tiles(const std::string& base, std::int64_t out,
                                                       std::int64_t in);
/// torchao's Float8Tensor with a scale per row.
[[nodiscard]] std::vector<TensorToWrite> torchao_float8(const std::string& base, std::int64_t out,
                                                        std::int64_t in);

}  // namespace headroom::test
