// Types of random weights that runs on this machine take beside those of WeightType.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gguf_mix.h"
#include "headroom/model_spec.h"
#include "quantization/group_format.h"

namespace headroom::detail {

/// A mix of llama.cpp's quantize, or a form of groups of codes for the matrices of the layers.
using DrawnType = std::variant<GgufMix, GroupFormat>;

/// Words of the mixes, in order: "q4_1", "q5_0", …
[[nodiscard]] std::vector<std::string> drawn_mixes();

/// The type that `word` names, in any case: one of those mixes ("q3_k" is q3_k_m, as in quantize),
/// or a form of groups with scales ("fp8-128x128-s32"). Empty if it names none.
[[nodiscard]] std::optional<DrawnType> drawn_type_named(std::string_view word);

/// The word of `type`.
[[nodiscard]] std::string name_of(const DrawnType& type);

/// `spec` with its weights in `type`. Beside matrices in groups, embeddings, head, routers and
/// norms have 16 bits, as in conversions to int4.
[[nodiscard]] ModelSpec drawn_as(ModelSpec spec, const DrawnType& type);

}  // namespace headroom::detail
