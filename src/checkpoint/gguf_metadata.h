// Metadata of a GGUF file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "byte_reader.h"
#include "gguf.h"

namespace headroom::checkpoint {

/// Reads `count` pairs of key and value. Throws Error{invalid_input} naming the file, and the key
/// if there is one.
[[nodiscard]] std::map<std::string_view, GgufValue> take_metadata(ByteReader& reader,
                                                                  std::uint64_t count);

/// Throws Error{invalid_input} for a damaged file.
[[noreturn]] void throw_damaged_gguf(const std::string& place, const std::string& message);

}  // namespace headroom::checkpoint
