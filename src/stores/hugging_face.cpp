#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "headroom/error.h"
#include "json_text.h"
#include "stores.h"
#include "user_folder.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModels = "models--";

/// Source: huggingface_hub, constants.py.
fs::path hub_folder() {
  for (const char* const variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (auto folder = folder_in(variable); !folder.empty()) return folder;
  }
  if (const auto home = folder_in("HF_HOME"); !home.empty()) return home / "hub";
  if (const auto cache = folder_in("XDG_CACHE_HOME"); !cache.empty()) {
    return cache / "huggingface" / "hub";
  }
  const auto home = folder_in("HOME");
  return home.empty() ? home : home / ".cache" / "huggingface" / "hub";
}

/// "Qwen/Qwen3-8B" of "models--Qwen--Qwen3-8B"; "gpt2" of "models--gpt2".
std::string repository_of(const std::string& folder) {
  std::string name = folder.substr(kModels.size());
  const auto separator = name.find("--");
  if (separator != std::string::npos) name.replace(separator, 2, "/");
  return name;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    std::error_code unknown;
    if (entry.is_directory(unknown)) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  return folders;
}

/// The commit in refs/main; empty without one.
std::string main_commit(const fs::path& repository) {
  std::error_code failed;
  const fs::path ref = repository / "refs" / "main";
  if (!fs::is_regular_file(ref, failed)) return {};
  std::string commit = read_text_file(ref.string());
  commit.erase(std::min(commit.find_first_of(" \r\n"), commit.size()));
  const bool hex = commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex ? commit : std::string();
}

/// The snapshot of the branch main, or the only one.
std::optional<fs::path> snapshot_of(const fs::path& repository, const std::string& name,
                                    LocalModels& local) {
  const std::vector<fs::path> snapshots = folders_in(repository / "snapshots");
  const std::string commit = main_commit(repository);
  if (commit.empty() && snapshots.size() == 1) return snapshots.front();
  const auto found = std::ranges::find(
      snapshots, commit, [](const fs::path& snapshot) { return snapshot.filename().string(); });
  if (found != snapshots.end()) return *found;
  // Only tokenizers or nothing were downloaded: no model, and no fault.
  if (snapshots.empty() && commit.empty()) return std::nullopt;
  const std::string message =
      commit.empty() ? fmt::format("has {} snapshots and no refs/main", snapshots.size())
                     : fmt::format("refs/main names the commit {}, which has no snapshot", commit);
  local.problems.push_back({name, fmt::format("{}: {}", repository.string(), message)});
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> snapshot_in(const fs::path& folder) {
  const std::string name = fs::weakly_canonical(folder).filename().string();
  if (!name.starts_with(kModels)) return std::nullopt;
  LocalModels problems;
  auto snapshot = snapshot_of(folder, name, problems);
  if (problems.problems.empty()) return snapshot;
  throw Error(ErrorCode::invalid_input, problems.problems.front().message, folder.string(),
              "name one of its folders in snapshots/");
}

void add_hugging_face(LocalModels& local) {
  for (const fs::path& repository : folders_in(hub_folder())) {
    const std::string folder = repository.filename().string();
    if (!folder.starts_with(kModels)) continue;
    const std::string name = repository_of(folder);
    try {
      if (const auto snapshot = snapshot_of(repository, name, local)) {
        add_model_folder(*snapshot, name, ModelStore::hugging_face, local);
      }
    } catch (const Error& error) {
      local.problems.push_back({name, error.what()});
    }
  }
}

}  // namespace headroom::detail
