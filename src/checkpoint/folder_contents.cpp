#include "folder_contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>

namespace headroom::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 4;

bool is_pickle(const fs::path& name) {
  static constexpr std::array<std::string_view, 4> kEndings{".bin", ".pt", ".pth", ".ckpt"};
  const std::string ending = name.extension().string();
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

}  // namespace

FolderContents folder_contents(const fs::path& folder) {
  FolderContents contents;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const fs::path name = entry.path().filename();
    if (name.string().starts_with(".")) continue;
    contents.names.push_back(name.string());
    if (is_pickle(name)) contents.pickles.push_back(name.string());
  }
  std::ranges::sort(contents.names);
  std::ranges::sort(contents.pickles);
  return contents;
}

std::string FolderContents::text() const {
  if (names.empty()) return "the folder is empty";
  // Weights tell most.
  std::vector<std::string> ordered = pickles;
  std::ranges::copy_if(names, std::back_inserter(ordered), [&](const std::string& name) {
    return std::ranges::find(pickles, name) == pickles.end();
  });
  const std::size_t shown = std::min(ordered.size(), kMostNames);
  std::string found = fmt::format("found {}", fmt::join(std::span(ordered).first(shown), ", "));
  if (shown < ordered.size()) found += fmt::format(" and {} more", ordered.size() - shown);
  return found;
}

std::string pickle_hint() {
  return "convert the PyTorch files, which headroom does not open: load them with transformers and "
         "call save_pretrained(FOLDER), which writes safetensors";
}

}  // namespace headroom::checkpoint
