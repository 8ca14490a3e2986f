// Files that are written whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace headroom::detail {

/// Has `write` fill a file beside `file`, which then takes its place: a failure leaves what was
/// there before. A pipe or a device cannot be replaced and is written to directly. Throws
/// Error{missing_resource}.
void write_whole_file(const std::filesystem::path& file,
                      const std::function<void(std::ostream&)>& write);
void write_whole_file(const std::filesystem::path& file, std::string_view text);

/// What is thrown where `file` cannot be written.
[[noreturn]] void throw_unwritable(const std::string& file, const std::string& reason);

}  // namespace headroom::detail
