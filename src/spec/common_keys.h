// Keys that mean the same in every family's config, and checks that several readers share.
#pragma once

#include <cstdint>
#include <string_view>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Takes the keys of any Hugging Face config that change no figure, and refuses those that would.
void read_common_keys(ConfigReader& config, ModelSpec& spec);

/// The activation that `keys` name, by Hugging Face's words.
[[nodiscard]] ActivationKind read_activation(ConfigReader& config, ConfigReader::Keys keys,
                                             ActivationKind otherwise);

/// Multi-head attention of `heads` heads over `hidden_size`. Throws when they do not divide it.
[[nodiscard]] AttentionSpec multi_head_attention(const ConfigReader& config,
                                                 std::string_view heads_key, std::int64_t heads,
                                                 std::int64_t hidden_size);

/// a·b, a size that `key` decides. Throws where that does not fit 64 bits.
[[nodiscard]] std::int64_t product(const ConfigReader& config, std::string_view key, std::int64_t a,
                                   std::int64_t b);

}  // namespace headroom::detail
