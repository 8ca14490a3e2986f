#include "shard_index.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

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
  return parse_object(bytes, index.string());
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

}  // namespace

ShardMap read_shard_index(const std::filesystem::path& index) {
  const json document = parse_index(index);
  const auto map = document.find("weight_map");
  if (map == document.end() || !map->is_object()) {
    refuse_index(index.string() + "#/weight_map", "is not a JSON object");
  }
  ShardMap shards;
  for (const auto& [tensor, file] : map->items()) {
    shards.emplace(tensor, shard_name(file, tensor_place(index.string(), tensor)));
  }
  return shards;
}

}  // namespace headroom::checkpoint
