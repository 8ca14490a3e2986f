// A GGUF model in one file or in several, as llama-gguf-split writes them. The first has the
// metadata of the model; the others may have only those of the split.
#pragma once

#include <filesystem>
#include <vector>

#include "gguf.h"

namespace headroom::checkpoint {

/// The files of the model that `file` belongs to, in split order: `file` alone, or all parts.
/// Throws Error{invalid_input} if a part is missing or another one than its name says.
/// Source: llama_model_loader in src/llama-model-loader.cpp, github.com/ggml-org/llama.cpp.
[[nodiscard]] std::vector<GgufFile> open_gguf_parts(const std::filesystem::path& file);

}  // namespace headroom::checkpoint
