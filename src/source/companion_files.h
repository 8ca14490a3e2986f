// Files that lie beside a model's config.json and describe something else.
#pragma once

#include <filesystem>

namespace headroom::detail {

/// Throws Error{invalid_input} that says what `file` describes if, by its name, it is one of the
/// files that Hugging Face's libraries and quantisers write beside a config.json.
void refuse_companion_file(const std::filesystem::path& file);

}  // namespace headroom::detail
