// Contents of a folder without a model that headroom reads, in words for its refusal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::checkpoint {

/// Names of a folder's entries, in order; hidden ones are left out.
struct FolderContents {
  std::vector<std::string> names;
  std::vector<std::string> pickles;  ///< those with weights as PyTorch pickles them

  /// "the folder is empty", or "found a.bin, b.txt and 3 more".
  [[nodiscard]] std::string text() const;
};

/// The contents of `folder`; none if it cannot be read.
[[nodiscard]] FolderContents folder_contents(const std::filesystem::path& folder);

/// Steps that turn pickled weights into files that headroom reads.
[[nodiscard]] std::string pickle_hint();

}  // namespace headroom::checkpoint
