#include "shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "headroom/error.h"
#include "json_bytes.h"
#include "mapped_file.h"
#include "safetensors.h"

namespace headroom::checkpoint {
namespace {

using nlohmann::json;

// The size limit of one file's header.
constexpr std::size_t kLargestIndex = 100'000'000;

[[noreturn]] void refuse_index(const std::string& place, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, place,
              "download or save the index again; it must be {\"weight_map\": {TENSOR: FILE, …}}");
}

json parse_index(const std::filesystem::path& index) {
  const MappedFile file(index);
  const auto bytes = file.bytes();
  if (bytes.size() > kLargestIndex) {
    refuse_index(index.string(), fmt::format("{} bytes are too many for an index", bytes.size()));
  }
  json parsed = parse_object(bytes, index.string());
  file.require_unchanged();
  return parsed;
}

/// Returns true if `name` can only be a file in the index's folder.
bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kSeparators("/\\\0", 3);
  return !name.empty() && name != "." && name.find("..") == std::string_view::npos &&
         name.find_first_of(kSeparators) == std::string_view::npos;
}

std::string shard_name(const json& value, const std::string& place) {
  if (!value.is_string()) refuse_index(place, "its file name is not a string");
  std::string name = value.get<std::string>();
  if (!is_plain_file_name(name)) {
    refuse_index(place,
                 fmt::format("\"{}\" is not the name of a file in the index's folder", name));
  }
  return name;
}

/// A sum in `metadata`. Some writers store it as a floating-point number.
std::optional<std::int64_t> sum_in(const json& document, const char* key) {
  const auto metadata = document.find("metadata");
  if (metadata == document.end() || !metadata->is_object()) return std::nullopt;
  const auto found = metadata->find(key);
  if (found == metadata->end() || !found->is_number()) return std::nullopt;
  const double sum = found->get<double>();
  constexpr double kMost = 0x1p62;
  if (!(sum >= 0 && sum < kMost) || sum != std::floor(sum)) return std::nullopt;
  return found->is_number_float() ? static_cast<std::int64_t>(sum) : found->get<std::int64_t>();
}

ShardMap shards_of(const json& document, const std::filesystem::path& index) {
  const auto map = document.find("weight_map");
  if (map == document.end() && document.contains("model_type")) {
    throw Error(ErrorCode::invalid_input, "is a model's config, not the index of its files",
                index.string(), "name its folder, which has the files of the weights");
  }
  if (map == document.end() || !map->is_object()) {
    refuse_index(index.string() + "#/weight_map", "is not a JSON object");
  }
  ShardMap shards;
  for (const auto& [tensor, file] : map->items()) {
    shards.emplace(tensor, shard_name(file, tensor_place(index.string(), tensor)));
  }
  return shards;
}

}  // namespace

void refuse_shards(const std::string& place, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, place,
              "download or save all files again: index and files do not match");
}

void require_listed(const ShardMap& shards, std::string_view tensor, const std::string& name,
                    const std::string& path) {
  const auto listed = shards.find(tensor);
  if (listed != shards.end() && listed->second == name) return;
  refuse_shards(tensor_place(path, tensor),
                listed == shards.end()
                    ? "the index does not list it"
                    : fmt::format("the index lists it in {}, not in this file", listed->second));
}

ShardMap read_shard_index(const std::filesystem::path& index) {
  return shards_of(parse_index(index), index);
}

ShardIndexSummary summarize_shard_index(const std::filesystem::path& index) {
  const json document = parse_index(index);
  const ShardMap shards = shards_of(document, index);
  ShardIndexSummary summary;
  summary.tensors = std::ssize(shards);
  summary.total_size = sum_in(document, "total_size");
  summary.total_parameters = sum_in(document, "total_parameters");
  std::set<std::string> files;
  for (const auto& [tensor, file] : shards) files.insert(file);
  summary.absent_files = std::ranges::count_if(files, [&](const std::string& file) {
    std::error_code failed;
    return !std::filesystem::is_regular_file(index.parent_path() / file, failed);
  });
  return summary;
}

}  // namespace headroom::checkpoint
