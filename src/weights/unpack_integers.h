// Weights as MLX, torchao and HQQ store them. Sources: mlx_lm/utils.py and mlx/ops.cpp, quantize;
// torchao/prototype/safetensors/safetensors_support.py and the tensor classes in
// torchao/quantization/quantize_/workflows; HQQLinear.state_dict in hqq/core/quantize.py.
// Internal to src/weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor_table.h"
#include "unpacked.h"

namespace headroom::detail {

/// Values per scale in MLX's modules. Tensors alone do not tell: 4 bits in groups of 64 have the
/// shapes of 8 bits in groups of 32.
class MlxGroups {
 public:
  /// Reads "quantization" of the config.json in `folder`; without one no group is known.
  explicit MlxGroups(const std::filesystem::path& folder);

  [[nodiscard]] std::optional<std::int64_t> of(const std::string& module) const;

 private:
  std::optional<std::int64_t> group_;
  std::map<std::string, std::int64_t> own_;  ///< by module
};

/// `values` [..., out, words] in integers of 32 bits, `scales` [..., out, in / group].
[[nodiscard]] UnpackResult unpack_mlx(const std::string& module,
                                      const checkpoint::TensorInfo& values,
                                      const checkpoint::TensorInfo& scales,
                                      std::optional<std::int64_t> group);

/// `values` [out, in] of a byte or [out, in / 2] of two values, by the scales: [out, …] or
/// [in / group, out]; integers of 32 bits in four dimensions with scales [in / group, out, 2].
[[nodiscard]] UnpackResult unpack_torchao(const std::string& module,
                                          const checkpoint::TensorInfo& values,
                                          const checkpoint::TensorInfo& scales);

/// `values` in any packing of HQQ, of a weight of `shape`.
[[nodiscard]] UnpackResult unpack_hqq(const std::string& module,
                                      const checkpoint::TensorInfo& values,
                                      std::vector<std::int64_t> shape);

}  // namespace headroom::detail
