// The metadata of a GGUF file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "byte_reader.h"
#include "gguf.h"

namespace headroom::checkpoint {

/// Takes `count` pairs of key and value. Throws Error{invalid_input} naming the file, and the key
/// where there is one.
[[nodiscard]] std::map<std::string_view, GgufValue> take_metadata(ByteReader& reader,
                                                                  std::uint64_t count);

/// Throws Error{invalid_input} about a file that no program wrote so.
[[noreturn]] void throw_damaged_gguf(const std::string& place, const std::string& message);

}  // namespace headroom::checkpoint
