// Parts of Ling and Ring (BailingMoE V2) that their hybrids with linear attention share.
#pragma once

#include <span>
#include <string_view>

#include "../decoder.h"
#include "../model_class.h"
#include "../stored/stored_names.h"

namespace headroom::detail {

/// Reads the layers of BailingMoE V2: sizes, norms of query and key heads, and the experts.
void read_bailing_v2(ConfigReader& config, ModelSpec& spec);

/// Gives the experts of BailingMoE V2 to all layers but the first ones: sigmoid scores, in groups.
void read_bailing_v2_experts(ConfigReader& config, ModelSpec& spec);

/// Stored names of BailingMoE: Q, K and V in one tensor; `own` rules come first.
[[nodiscard]] NameTable bailing_names(std::span<const NameRule> own = {});

/// Reads Ling and Ring 2.5: lightning attention, and latent attention in the last layer of every
/// group.
void read_bailing_v2_5(ConfigReader& config, ModelSpec& spec);

[[nodiscard]] ModelClasses bailing_v2_5_classes();

/// Stored names of Ling's lightning attention.
[[nodiscard]] std::span<const NameRule> ling_lightning_rules();

/// Stored names of Ling 2.5 and 3: latent attention beside lightning or delta attention.
[[nodiscard]] NameTable ling_names();

/// Returns whether one of `classes` has this name.
[[nodiscard]] bool has_class(const ModelClasses& classes, std::string_view name);

}  // namespace headroom::detail
