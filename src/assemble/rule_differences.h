// Features of a model that a rule of thumb does not assume. Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::detail {

/// Each entry is a short phrase: "8 key-value heads, not 32". Empty where the rule's assumptions
/// hold: l layers of multi-head attention over d, and of a plain FFN of 4·d.
using Differences = std::vector<std::string>;

/// Of a rule for the parameters of the layers.
[[nodiscard]] Differences layer_parameter_differences(const ModelSpec& spec);
/// Of a rule for all parameters: layers, and one table of word embeddings.
[[nodiscard]] Differences parameter_differences(const ModelSpec& spec);
/// Of a rule for the matrix FLOPs of the layers.
[[nodiscard]] Differences layer_flop_differences(const ModelSpec& spec, const Workload& workload);
/// Of 2·N·b·s, whose N has no embeddings and no head.
[[nodiscard]] Differences forward_per_parameter_differences(const ModelSpec& spec);
/// Of 6·N·D, whose N has both.
[[nodiscard]] Differences training_per_parameter_differences(const ModelSpec& spec);
/// Of the bytes that a layer saves for its backward pass.
[[nodiscard]] Differences saved_differences(const ModelSpec& spec, const Workload& workload);
/// Of the KV-cache of multi-head attention.
[[nodiscard]] Differences kv_differences(const ModelSpec& spec);

}  // namespace headroom::detail
