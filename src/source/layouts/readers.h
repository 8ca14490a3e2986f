// The readers of the layouts. Internal to src/source/layouts.
#pragma once

#include <filesystem>

#include "headroom/model_source.h"

namespace headroom::detail {

/// The checkpoint that Meta (github.com/meta-llama/llama-models) or Mistral
/// (github.com/mistralai/mistral-inference) describes with `folder`/params.json.
[[nodiscard]] Model read_params_folder(const std::filesystem::path& folder);

/// The base model that `folder`/adapter_config.json names, and the adapter's weights. Source: PEFT,
/// github.com/huggingface/peft.
[[nodiscard]] Model read_adapter_folder(const std::filesystem::path& folder);

/// The transformer of `folder`/modules.json and its dense layers. Source: sentence-transformers,
/// github.com/UKPLab/sentence-transformers.
[[nodiscard]] Model read_sentence_transformers_folder(const std::filesystem::path& folder);

/// The transformer that `folder`/model_index.json names, of a class that headroom reads. Throws
/// Error{invalid_input} that names the components if there is none. Source: diffusers,
/// github.com/huggingface/diffusers.
[[nodiscard]] Model read_diffusers_folder(const std::filesystem::path& folder);

/// The folder's own name, also with a trailing slash or as ".".
[[nodiscard]] std::string name_of_folder(const std::filesystem::path& folder);

}  // namespace headroom::detail
