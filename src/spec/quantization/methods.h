// Readers of one quantisation method each, and what they share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../config_reader.h"
#include "formats.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Each returns the storage that the config of its method states. `plain_type` is the type of
/// unquantised weights where the model's config names none.
[[nodiscard]] WeightStorage read_fp8(ConfigReader& config);
[[nodiscard]] WeightStorage read_fbgemm_fp8(ConfigReader& config);
[[nodiscard]] WeightStorage read_mxfp4(ConfigReader& config);
[[nodiscard]] WeightStorage read_modelopt(ConfigReader& config);
/// Adds a rule per format from ModelOpt's `quantized_layers`: {module: {"quant_algo": …}}.
void read_quantized_layers(ConfigReader& config, WeightStorage& storage);
[[nodiscard]] WeightStorage read_compressed_tensors(ConfigReader& config);
[[nodiscard]] WeightStorage read_quark(ConfigReader& config);
[[nodiscard]] WeightStorage read_awq(ConfigReader& config);
[[nodiscard]] WeightStorage read_gptq(ConfigReader& config);
[[nodiscard]] WeightStorage read_bitsandbytes(ConfigReader& config);
[[nodiscard]] WeightStorage read_hqq(ConfigReader& config);
[[nodiscard]] WeightStorage read_torchao(ConfigReader& config);
[[nodiscard]] WeightStorage read_exl2(ConfigReader& config);
[[nodiscard]] WeightStorage read_exl3(ConfigReader& config);
[[nodiscard]] WeightStorage read_bitnet_weights(ConfigReader& config);
[[nodiscard]] WeightStorage read_mlx(ConfigReader& config);

/// Kinds that most methods quantise: matrices inside the layers but routers.
[[nodiscard]] std::vector<ModuleKind> layer_matrices();
/// Every nn.Linear: those, routers and the head.
[[nodiscard]] std::vector<ModuleKind> linear_matrices();
/// All matrices.
[[nodiscard]] std::vector<ModuleKind> all_matrices();

/// A module pattern as published lists write it: "re:…", wildcards, or a name.
[[nodiscard]] ModulePattern pattern_of(std::string text);
[[nodiscard]] std::vector<ModulePattern> patterns_of(std::vector<std::string> texts);

/// Adds a rule that keeps the matrices of these modules in the plain type; none if the list is
/// empty.
void keep_plain(WeightStorage& storage, std::vector<std::string> modules);

/// A whole number that may be negative; `group_size` -1 and absence mean 0, a whole row.
[[nodiscard]] std::int64_t whole_number(ConfigReader& config, ConfigReader::Keys keys,
                                        std::int64_t otherwise);
[[nodiscard]] std::int64_t group_size(ConfigReader& config, ConfigReader::Keys keys,
                                      std::int64_t otherwise);

}  // namespace headroom::detail
