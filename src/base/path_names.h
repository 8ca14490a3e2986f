// Tells paths from the names of presets, machines and stored models.
#pragma once

#include <string>
#include <string_view>

namespace headroom::detail {

/// Returns true if `name` can only be a path: by its start or end, by the ending of a model's or
/// machine's file, or because the folder before its first slash exists.
[[nodiscard]] bool names_a_file(std::string_view name);

/// Throws Error{missing_resource}: nothing is at `path`.
[[noreturn]] void throw_no_such_file(const std::string& path);

}  // namespace headroom::detail
