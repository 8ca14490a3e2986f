// Converts a model folder to GGUF by the published rules of llama.cpp's converter, for tests of the
// reader. Source: gguf-py/gguf/tensor_mapping.py for names, and set_gguf_parameters and
// modify_tensors of each class in conversion/, github.com/ggml-org/llama.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/gguf_writer.h"

namespace headroom::test {

struct ConvertedTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

using ConvertedTensors = std::map<std::string, ConvertedTensor>;

/// One class of the converter.
struct GgufConverter {
  std::string_view model_type;
  std::string_view architecture;
  /// Parts of names in the checkpoint and in GGUF, before those of all families. An empty second
  /// name drops the tensor.
  std::vector<std::pair<std::string_view, std::string_view>> names;
  /// Adds the metadata that the class adds to the base class's, keys without architecture.
  void (*metadata)(const nlohmann::json& config, nlohmann::json& keys) = nullptr;
  /// Changes a tensor under its name in the checkpoint; may rename it and add others.
  void (*modify)(const nlohmann::json& config, ConvertedTensors& tensors) = nullptr;
  /// Values that llama.cpp fixes, to be set in the config of the compared model.
  std::string_view fixed = "{}";
  /// Sizes only: headroom does not reverse the changes to values.
  bool sizes_only = false;
  /// Moves tensors to metadata, keys as in the file.
  void (*to_metadata)(ConvertedTensors& tensors, nlohmann::json& keys) = nullptr;
};

/// The converter's class for a config; null if this file has none.
[[nodiscard]] const GgufConverter* find_gguf_converter(const nlohmann::json& config);

/// A file that is not yet written.
struct ConvertedModel {
  nlohmann::json keys;       ///< metadata, by their names in the file
  ConvertedTensors tensors;  ///< by their names in the file

  /// The file with all tensors, in F32.
  [[nodiscard]] GgufWriter writer() const;
};

/// Adds one key of the metadata: a list of its first element's type, of int32 if empty.
void add_metadata(GgufWriter& writer, const std::string& key, const nlohmann::json& value);

/// The model that the converter makes of the folder.
[[nodiscard]] ConvertedModel convert_to_gguf(const GgufConverter& converter,
                                             const nlohmann::json& config,
                                             const std::filesystem::path& folder);

}  // namespace headroom::test
