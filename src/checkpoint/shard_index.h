// model.safetensors.index.json: which file of a sharded checkpoint holds which tensor.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace headroom::checkpoint {

/// From a tensor's name to the name of the file, beside the index, that holds it.
using ShardMap = std::map<std::string, std::string, std::less<>>;

/// Reads an index. Throws Error{invalid_input} when it is not valid, or names a file that is not
/// plainly beside it.
[[nodiscard]] ShardMap read_shard_index(const std::filesystem::path& index);

}  // namespace headroom::checkpoint
