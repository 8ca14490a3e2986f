// One reader per store. Internal to src/stores.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headroom/model_source.h"

namespace headroom::detail {

/// Adds the models of the Hugging Face cache: models--ORG--NAME/snapshots/COMMIT, where refs/main
/// holds the commit. Source: huggingface_hub, "Understand caching".
void add_hugging_face(LocalModels& local);

/// The snapshot of `folder`, if it is a repository in that cache. Throws Error{invalid_input} if it
/// is not clear which one.
[[nodiscard]] std::optional<std::filesystem::path> snapshot_in(const std::filesystem::path& folder);

/// Adds the models of Ollama: manifests/HOST/NAMESPACE/NAME/TAG names the digest of a GGUF blob.
/// Source: ollama, server/manifest.go and server/modelpath.go.
void add_ollama(LocalModels& local);

/// Adds the models of LM Studio: models/ORG/NAME with GGUF files, or with a config.json and
/// safetensors.
void add_lm_studio(LocalModels& local);

/// Adds the models in `folder`: the one of its config.json, and each GGUF file or split. A single
/// GGUF model is called `name`, others "NAME/FILE". Links to missing files are problems.
void add_model_folder(const std::filesystem::path& folder, const std::string& name,
                      ModelStore store, LocalModels& local);

}  // namespace headroom::detail
