#include "checkpoint.h"

#include <fmt/format.h>

#include <set>
#include <system_error>
#include <utility>

#include "headroom/error.h"
#include "shard_index.h"

namespace headroom::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnding = ".safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The file to open at `path`; the first usual name for an empty folder.
fs::path listing_at(const fs::path& path) {
  if (!is_folder(path)) return path;
  return safetensors_in(path).value_or(path / kSafetensorsListings.front());
}

}  // namespace

std::optional<fs::path> safetensors_in(const fs::path& folder) {
  for (const char* const name : kSafetensorsListings) {
    if (is_file(folder / name)) return folder / name;
  }
  return std::nullopt;
}

Checkpoint::Checkpoint(const fs::path& path) : listing_(listing_at(path).string()) {
  if (is_folder(path) && !exists(path)) {
    throw Error(ErrorCode::missing_resource, "contains no weights", path.string(),
                fmt::format("add {} or {}", kSafetensorsListings[0], kSafetensorsListings[1]));
  }
  if (listing_.ends_with(kIndexEnding)) {
    open_shards(listing_);
  } else {
    add(SafetensorsFile(listing_));
  }
}

bool Checkpoint::exists(const fs::path& path) { return is_file(listing_at(path)); }

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.tensor;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const std::string& Checkpoint::location(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? listing_ : files_[found->second.file].path();
}

void Checkpoint::require_unchanged() const {
  for (const SafetensorsFile& file : files_) file.require_unchanged();
}

void Checkpoint::open_shards(const fs::path& index) {
  const ShardMap shards = read_shard_index(index);
  std::set<std::string> files;
  for (const auto& [tensor, file] : shards) files.insert(file);
  for (const std::string& name : files) {
    SafetensorsFile file(index.parent_path() / name);
    for (const StoredTensor& tensor : file.tensors()) {
      require_listed(shards, tensor.name, name, file.path());
    }
    add(std::move(file));
  }
  for (const auto& [tensor, file] : shards) {
    if (find(tensor) != nullptr) continue;
    refuse_shards(tensor_place((index.parent_path() / file).string(), tensor),
                  "the index lists it in this file, which lacks it");
  }
}

void Checkpoint::add(SafetensorsFile file) {
  files_.push_back(std::move(file));
  for (const StoredTensor& tensor : files_.back().tensors()) {
    entries_[tensor.name] = {&tensor, files_.size() - 1};
  }
}

}  // namespace headroom::checkpoint
