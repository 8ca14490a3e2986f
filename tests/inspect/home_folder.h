// A home folder with the stores of other programs, for tests of local models.
#pragma once

#include <filesystem>
#include <string>

#include "support/scratch.h"

namespace headroom::test {

/// The commit of the branch main in the Hugging Face cache.
inline constexpr const char* kHubCommit = "c1899de289a04d12100db370d81485cdf75e47ca";

/// A home folder without models, and no variable that names a store elsewhere.
class Home {
 public:
  [[nodiscard]] const ScratchFolder& folder() const { return folder_; }
  /// A file of a repository in the Hugging Face cache, stored as the hub does: a link to a blob.
  void cache(const std::string& repository, const std::string& file,
             const std::filesystem::path& content) const {
    const std::filesystem::path root = std::filesystem::path(".cache/huggingface/hub") / repository;
    folder_.write(root / "refs/main", kHubCommit);
    const std::filesystem::path blob = folder_.path() / root / "blobs" / (file + ".blob");
    const std::filesystem::path link = folder_.path() / root / "snapshots" / kHubCommit / file;
    std::filesystem::create_directories(blob.parent_path());
    std::filesystem::create_directories(link.parent_path());
    if (std::filesystem::exists(content)) std::filesystem::copy_file(content, blob);
    std::filesystem::create_symlink(blob, link);
  }
  /// A model of Ollama: its manifest, and its blob unless `content` is empty.
  void pull(const std::string& manifest, const std::string& content) const {
    const std::string digest(64, 'a');
    folder_.write(".ollama/models/manifests/" + manifest,
                  R"({"schemaVersion": 2, "layers": [
                      {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:0"},
                      {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" +
                      digest + R"(", "size": 7}]})");
    if (!content.empty()) folder_.write(".ollama/models/blobs/sha256-" + digest, content);
  }

 private:
  ScratchFolder folder_;
  ScratchVariable home_{"HOME", folder_.path().string()};
  ScratchVariable hub_{"HF_HUB_CACHE", ""};
  ScratchVariable legacy_hub_{"HUGGINGFACE_HUB_CACHE", ""};
  ScratchVariable hf_home_{"HF_HOME", ""};
  ScratchVariable cache_{"XDG_CACHE_HOME", ""};
  ScratchVariable ollama_{"OLLAMA_MODELS", (folder_.path() / ".ollama/models").string()};
};

}  // namespace headroom::test
