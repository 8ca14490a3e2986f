// model.safetensors.index.json: the file of each tensor in a sharded checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::checkpoint {

/// Maps a tensor's name to the name of its file in the index's folder.
using ShardMap = std::map<std::string, std::string, std::less<>>;

/// Throws Error{invalid_input}: at `place`, index and files do not match.
[[noreturn]] void refuse_shards(const std::string& place, const std::string& message);

/// Throws as `refuse_shards` unless `shards` lists `tensor` in the file `name`, which is at `path`.
void require_listed(const ShardMap& shards, std::string_view tensor, const std::string& name,
                    const std::string& path);

/// Reads an index. Throws Error{invalid_input} if it is not valid or names a file outside its
/// folder.
[[nodiscard]] ShardMap read_shard_index(const std::filesystem::path& index);

/// Sums that an index states, and the shards that are not beside it.
struct ShardIndexSummary {
  std::int64_t tensors = 0;
  std::int64_t absent_files = 0;
  std::optional<std::int64_t> total_size;        ///< metadata.total_size, in bytes
  std::optional<std::int64_t> total_parameters;  ///< metadata.total_parameters
};

/// Reads the index and looks for its shards. Throws as `read_shard_index`.
[[nodiscard]] ShardIndexSummary summarize_shard_index(const std::filesystem::path& index);

}  // namespace headroom::checkpoint
