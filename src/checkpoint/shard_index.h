// model.safetensors.index.json: the file of each tensor in a sharded checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace headroom::checkpoint {

/// Maps a tensor's name to the name of its file in the index's folder.
using ShardMap = std::map<std::string, std::string, std::less<>>;

/// Reads an index. Throws Error{invalid_input} if it is not valid or names a file outside its
/// folder.
[[nodiscard]] ShardMap read_shard_index(const std::filesystem::path& index);

}  // namespace headroom::checkpoint
