// One tensor's description in the header of a safetensors file.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "safetensors.h"

namespace headroom::measured {

/// The tensor that `entry`, {"dtype", "shape", "data_offsets"}, describes; its data are a part of
/// `data`, the bytes of `file` behind the header. Throws Error{invalid_input} naming file and
/// tensor when they do not fit together.
[[nodiscard]] StoredTensor read_entry(const std::string& name, const nlohmann::json& entry,
                                      std::span<const std::byte> data, const std::string& file);

/// Throws Error{invalid_input} about a file that no program wrote so.
[[noreturn]] void throw_damaged(const std::string& place, const std::string& message);

}  // namespace headroom::measured
