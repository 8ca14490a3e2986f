// Values of one axis of a sweep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::cli {

/// Parses "1,2,8", "1..8", "1..64:x2", "128..1024:+128", and lists of these. Throws a usage error
/// for other text, and for more values than any sweep needs.
[[nodiscard]] std::vector<std::int64_t> parse_axis(const std::string& names,
                                                   const std::string& text);

}  // namespace headroom::cli
