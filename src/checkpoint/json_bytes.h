// JSON inside a weight file or in a separate file.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace headroom::checkpoint {

/// The JSON object in `bytes`. Throws Error{invalid_input} naming `file` if they are anything else,
/// repeat a key, or contain a zero byte.
[[nodiscard]] nlohmann::json parse_object(std::span<const std::byte> bytes,
                                          const std::string& file);

}  // namespace headroom::checkpoint
