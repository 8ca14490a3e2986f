// Folders that describe a model otherwise than with Hugging Face's config.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headroom/model_source.h"

namespace headroom::detail {

/// True if `path` is a PEFT adapter, a sentence-transformers or diffusers folder, a checkpoint with
/// Meta's or Mistral's params.json, or a NeMo or Megatron checkpoint: the folder, or the file that
/// describes it.
[[nodiscard]] bool has_other_layout(const std::string& path);

/// The model of such a folder; empty if `path` has none of these layouts. Throws
/// Error{invalid_input} that says what it is if it cannot be read as one model.
[[nodiscard]] std::optional<Model> read_other_layout(const std::filesystem::path& path);

}  // namespace headroom::detail
