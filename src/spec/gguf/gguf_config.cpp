#include "gguf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "family.h"
#include "gguf_metadata_reader.h"
#include "headroom/error.h"
#include "unknown_type.h"

namespace headroom::detail {
namespace {

/// An architecture and its family.
struct FamilyArchitecture {
  const Family* family = nullptr;
  const GgufArchitecture* architecture = nullptr;
};

/// All known architectures; conditional ones first, since the others match always.
std::vector<FamilyArchitecture> known_architectures() {
  std::vector<FamilyArchitecture> known;
  for (const Family& family : families()) {
    const auto* const form = std::get_if<GgufForm>(&family.gguf);
    if (form == nullptr) continue;
    for (const GgufArchitecture& architecture : form->architectures) {
      known.push_back({&family, &architecture});
    }
  }
  // std::ranges::stable_partition does not compile with clang 14 and libstdc++ 12.
  std::stable_partition(known.begin(), known.end(), [](const FamilyArchitecture& entry) {
    return !entry.architecture->needs.empty();
  });
  return known;
}

bool fits(const GgufArchitecture& architecture, const GgufMetadataReader& metadata) {
  if (architecture.name != metadata.architecture()) return false;
  return architecture.needs.empty() || metadata.is_set(architecture.needs);
}

std::optional<FamilyArchitecture> find_architecture(const GgufMetadataReader& metadata) {
  for (const FamilyArchitecture& entry : known_architectures()) {
    if (fits(*entry.architecture, metadata)) return entry;
  }
  return std::nullopt;
}

/// llama.cpp names the files of all towers and projectors "clip", whichever encoder they hold
/// (MODEL_ARCH.MMPROJ in gguf-py/gguf/constants.py).
void refuse_projector(const GgufMetadataReader& metadata, const std::string& file) {
  if (metadata.architecture() != "clip") return;
  throw Error(ErrorCode::invalid_input,
              "this is a projector file: the towers of a multimodal model, without its decoder",
              file + ": general.architecture",
              "name the model's own GGUF file; `headroom inspect` lists the tensors of this one");
}

FamilyArchitecture architecture_of(const GgufMetadataReader& metadata, const std::string& file) {
  if (const auto found = find_architecture(metadata)) return *found;
  refuse_projector(metadata, file);
  throw Error(ErrorCode::invalid_input,
              fmt::format("the architecture \"{}\" is unknown", metadata.architecture()),
              file + ": general.architecture", list_of_types_hint(metadata.architecture()));
}

bool has_key(const GgufArchitecture& architecture, std::string_view name) {
  const auto lists = [&](std::span<const GgufKey> keys) {
    return std::ranges::find(keys, name, &GgufKey::metadata) != keys.end();
  };
  return lists(architecture.common) || lists(architecture.own);
}

/// The sizes that files of `architecture` must state: a transformers class has defaults for them,
/// which say nothing of a GGUF model. Source: load_hparams in src/llama-model.cpp,
/// github.com/ggml-org/llama.cpp.
std::vector<std::string_view> required_keys(const GgufArchitecture& architecture,
                                            const GgufMetadataReader& metadata) {
  std::vector<std::string_view> keys{"block_count", "embedding_length"};
  constexpr std::string_view kHeads = "attention.head_count";
  constexpr std::string_view kFeedForward = "feed_forward_length";
  if (has_key(architecture, kHeads)) keys.push_back(kHeads);
  // A model of experts alone has only their length.
  const bool only_experts = metadata.is_present("expert_feed_forward_length") &&
                            !metadata.is_set("leading_dense_block_count");
  if (has_key(architecture, kFeedForward) && !only_experts) keys.push_back(kFeedForward);
  return keys;
}

void require_sizes(const GgufArchitecture& architecture, const GgufMetadataReader& metadata,
                   const std::string& file) {
  std::vector<std::string> missing;
  for (const std::string_view key : required_keys(architecture, metadata)) {
    if (metadata.is_present(key)) continue;
    missing.push_back(fmt::format("{}.{}", metadata.architecture(), key));
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("lacks {}, which llama.cpp requires", fmt::join(missing, ", ")), file,
              "convert the model again with a current converter");
}

void add_keys(std::span<const GgufKey> keys, const GgufMetadataReader& metadata,
              ConfigDraft& config) {
  for (const GgufKey& key : keys) config.copy(metadata, key.metadata, key.config);
}

void add_head_dim(const GgufMetadataReader& metadata, GgufHeadDim when, ConfigDraft& config) {
  if (when == GgufHeadDim::never) return;
  const auto head_dim = metadata.count("attention.key_length");
  if (!head_dim) return;
  const auto width = metadata.count("embedding_length").value_or(0);
  const auto heads = metadata.count("attention.head_count").value_or(0);
  const bool usual = heads > 0 && width % heads == 0 && width / heads == *head_dim;
  if (!usual || when == GgufHeadDim::always) config.set_count("head_dim", *head_dim);
}

void add_tie(const GgufMetadataReader& metadata, GgufTie tie, ConfigDraft& config) {
  switch (tie) {
    case GgufTie::always:
      config.set_flag("tie_word_embeddings", true);
      break;
    case GgufTie::no_output_tensor:
      config.set_flag("tie_word_embeddings", !metadata.has_tensor("output.weight"));
      break;
  }
}

}  // namespace

bool is_known_architecture(const checkpoint::GgufContent& content, const std::string& file) {
  return find_architecture(GgufMetadataReader(content, file)).has_value();
}

std::string config_from_gguf(const checkpoint::GgufContent& content, const std::string& file) {
  const GgufMetadataReader metadata(content, file);
  const auto [family, found] = architecture_of(metadata, file);
  const GgufArchitecture& architecture = *found;
  require_sizes(architecture, metadata, file);
  nlohmann::json object;
  ConfigDraft config(object);
  config.set_text("model_type", family->model_types.names.front());
  config.set_texts("architectures", {family->classes.list.front().name});
  config.set_count("vocab_size", metadata.vocab_size());
  add_keys(architecture.common, metadata, config);
  add_keys(architecture.own, metadata, config);
  for (const GgufFlag& flag : architecture.flags) {
    config.set_flag(flag.config, metadata.has_tensor(flag.tensor));
  }
  for (const GgufConstant& constant : architecture.constants) {
    config.set_json(constant.config, constant.json);
  }
  add_head_dim(metadata, architecture.head_dim, config);
  add_tie(metadata, architecture.tie, config);
  if (architecture.finish != nullptr) architecture.finish(metadata, config);
  return object.dump();
}

}  // namespace headroom::detail
