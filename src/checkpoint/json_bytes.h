// JSON that stands in a file of weights or beside it.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace headroom::checkpoint {

/// The JSON object in `bytes`. Throws Error{invalid_input} naming `file` when they are anything
/// else, repeat a key, or hold a zero byte.
[[nodiscard]] nlohmann::json parse_object(std::span<const std::byte> bytes,
                                          const std::string& file);

}  // namespace headroom::checkpoint
