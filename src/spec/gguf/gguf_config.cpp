#include "gguf_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "gguf_architectures.h"
#include "gguf_metadata_reader.h"
#include "headroom/error.h"

namespace headroom::detail {
namespace {

using nlohmann::json;

bool fits(const GgufArchitecture& architecture, const GgufMetadataReader& metadata) {
  if (architecture.name != metadata.architecture()) return false;
  return architecture.needs.empty() || metadata.count(architecture.needs).value_or(0) > 0;
}

std::string known_names() {
  std::string list;
  for (const auto& group : {gguf_dense_architectures(), gguf_expert_architectures()}) {
    for (const GgufArchitecture& architecture : group) {
      if (!architecture.needs.empty()) continue;
      list += (list.empty() ? "" : ", ") + std::string(architecture.name);
    }
  }
  return list;
}

const GgufArchitecture& architecture_of(const GgufMetadataReader& metadata,
                                        const std::string& file) {
  for (const auto& group : {gguf_expert_architectures(), gguf_dense_architectures()}) {
    for (const GgufArchitecture& architecture : group) {
      if (fits(architecture, metadata)) return architecture;
    }
  }
  throw Error(ErrorCode::invalid_input,
              fmt::format("the architecture \"{}\" is not understood", metadata.architecture()),
              file + ": general.architecture", "understood are: " + known_names());
}

void add_keys(std::span<const GgufKey> keys, const GgufMetadataReader& metadata, json& config) {
  for (const GgufKey& key : keys) {
    if (auto value = metadata.value(key.metadata)) config[std::string(key.config)] = *value;
  }
}

void add_head_dim(const GgufMetadataReader& metadata, GgufHeadDim when, json& config) {
  if (when == GgufHeadDim::never) return;
  const auto head_dim = metadata.count("attention.key_length");
  if (!head_dim) return;
  const auto width = metadata.count("embedding_length").value_or(0);
  const auto heads = metadata.count("attention.head_count").value_or(0);
  const bool usual = heads > 0 && width == heads * *head_dim && width / heads == *head_dim;
  if (!usual || when == GgufHeadDim::always) config["head_dim"] = *head_dim;
}

void add_tie(const GgufMetadataReader& metadata, GgufTie tie, json& config) {
  switch (tie) {
    case GgufTie::always:
      config["tie_word_embeddings"] = true;
      break;
    case GgufTie::no_output_tensor:
      config["tie_word_embeddings"] = !metadata.has_tensor("output.weight");
      break;
  }
}

}  // namespace

std::string config_from_gguf(const checkpoint::GgufContent& content, const std::string& file) {
  const GgufMetadataReader metadata(content, file);
  const GgufArchitecture& architecture = architecture_of(metadata, file);
  json config = {{"model_type", architecture.model_type},
                 {"architectures", {architecture.architecture}},
                 {"vocab_size", metadata.vocab_size()}};
  add_keys(architecture.common, metadata, config);
  add_keys(architecture.own, metadata, config);
  for (const GgufFlag& flag : architecture.flags) {
    config[std::string(flag.config)] = metadata.has_tensor(flag.tensor);
  }
  for (const GgufConstant& constant : architecture.constants) {
    config[std::string(constant.config)] = json::parse(constant.json);
  }
  add_head_dim(metadata, architecture.head_dim, config);
  add_tie(metadata, architecture.tie, config);
  if (architecture.finish != nullptr) architecture.finish(metadata, config);
  return config.dump();
}

}  // namespace headroom::detail
