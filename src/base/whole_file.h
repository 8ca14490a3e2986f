// Writes files whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace headroom::detail {

/// Writes to a temporary file and renames it to `file`, so that a failure leaves the old content. A
/// pipe or device is written to directly. Throws Error{missing_resource}.
void write_whole_file(const std::filesystem::path& file,
                      const std::function<void(std::ostream&)>& write);
void write_whole_file(const std::filesystem::path& file, std::string_view text);

/// Throws Error{missing_resource} for an unwritable `file`.
[[noreturn]] void throw_unwritable(const std::string& file, const std::string& reason);

}  // namespace headroom::detail
