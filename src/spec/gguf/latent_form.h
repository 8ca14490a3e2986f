// GGUF forms of DeepSeek's families: latent attention, and routed experts beside shared ones.
#pragma once

#include <string_view>
#include <vector>

#include "gguf_form.h"

namespace headroom::detail {

/// Keys of dense layers before routed and shared experts, and of one architecture.
[[nodiscard]] std::vector<GgufKey> gguf_moe_keys(const std::vector<GgufKey>& own);

/// DeepSeek V2 and V3.
[[nodiscard]] GgufArchitecture deepseek2_architecture();
/// Latent attention with an indexer: DeepSeek-V3.2 and GLM-5.
[[nodiscard]] GgufArchitecture indexed_architecture(std::string_view name);
/// Mistral 4.
[[nodiscard]] GgufArchitecture mistral4_architecture();
/// GLM-4.5.
[[nodiscard]] GgufArchitecture glm4_moe_architecture();

}  // namespace headroom::detail
