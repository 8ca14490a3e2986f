// GGUF tensors as the families' own checkpoints have them.
// Source of what the converter changes: convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ggml_values.h"
#include "headroom/error.h"
#include "model_files.h"
#include "weight_reader.h"

namespace headroom::checkpoint {
namespace {

/// What the converter does to a family's values besides renaming and stacking.
enum class Conversion {
  none,
  /// Rows of queries and keys are reordered within each head, so that the two dimensions that turn
  /// together are neighbours: row i of the first half, row i of the second, … (LlamaModel.permute).
  interleaved_heads,
  /// Norms are stored as the factor that they multiply by, 1 + weight (GemmaModel).
  norms_plus_one,
};

struct FamilyConversion {
  std::string_view model_type;
  Conversion conversion;
};

constexpr std::array kConversions{
    FamilyConversion{"llama", Conversion::interleaved_heads},
    FamilyConversion{"mistral", Conversion::interleaved_heads},
    FamilyConversion{"mixtral", Conversion::interleaved_heads},
    FamilyConversion{"granite", Conversion::interleaved_heads},
    FamilyConversion{"granitemoe", Conversion::interleaved_heads},
    FamilyConversion{"olmo", Conversion::interleaved_heads},
    FamilyConversion{"smollm3", Conversion::interleaved_heads},
    FamilyConversion{"gemma", Conversion::norms_plus_one},
    FamilyConversion{"gemma2", Conversion::norms_plus_one},
    FamilyConversion{"gemma3_text", Conversion::norms_plus_one},
    FamilyConversion{"bloom", Conversion::none},
    FamilyConversion{"cohere", Conversion::none},
    FamilyConversion{"cohere2", Conversion::none},
    FamilyConversion{"falcon", Conversion::none},
    FamilyConversion{"gpt2", Conversion::none},
    FamilyConversion{"gpt_neox", Conversion::none},
    FamilyConversion{"gpt_oss", Conversion::none},
    FamilyConversion{"mpt", Conversion::none},
    FamilyConversion{"olmo2", Conversion::none},
    FamilyConversion{"phi", Conversion::none},
    FamilyConversion{"phi3", Conversion::none},
    FamilyConversion{"qwen2", Conversion::none},
    FamilyConversion{"qwen2_moe", Conversion::none},
    FamilyConversion{"qwen3", Conversion::none},
    FamilyConversion{"qwen3_moe", Conversion::none},
    FamilyConversion{"stablelm", Conversion::none},
    FamilyConversion{"starcoder2", Conversion::none},
    FamilyConversion{"t5", Conversion::none},
};

Conversion conversion_of(const ModelSpec& spec, const std::string& file) {
  const auto* const found = std::ranges::find(kConversions, std::string_view(spec.model_type),
                                              &FamilyConversion::model_type);
  if (found != kConversions.end()) return found->conversion;
  throw Error(
      ErrorCode::invalid_input,
      fmt::format("what converting does to the weights of {} is not known", spec.model_type), file,
      "run the safetensors, or random weights with --weights random");
}

class GgufReader final : public WeightReader {
 public:
  GgufReader(const std::filesystem::path& file, const ModelSpec& spec)
      : files_(file), conversion_(conversion_of(spec, file.string())) {
    const AttentionSpec& attention = spec.main_stack().self_attention;
    query_heads_ = attention.num_attention_heads;
    key_heads_ = attention.num_key_value_heads;
    head_dim_ = attention.head_dim;
  }

  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const override {
    const auto index = files_.tensors().find(name);
    if (!index) return std::nullopt;
    const auto sizes = files_.tensors()[*index].shape;
    return std::vector<std::int64_t>(sizes.begin(), sizes.end());
  }

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names;
    names.reserve(files_.tensors().size());
    for (std::size_t i = 0; i < files_.tensors().size(); ++i) {
      names.emplace_back(files_.tensors()[i].name);
    }
    std::ranges::sort(names);
    return names;
  }

  [[nodiscard]] const std::string& location(const std::string& name) const override {
    const auto index = files_.tensors().find(name);
    return index ? files_.paths()[files_.tensors()[*index].file] : files_.paths().front();
  }

  void read(const std::string& name, std::optional<std::int64_t> expert,
            std::span<float> out) const override {
    const auto index = files_.tensors().find(name);
    if (!index) throw Error(ErrorCode::internal, "a tensor is read that is not there");
    const TensorInfo tensor = files_.tensors()[*index];
    std::span<const std::byte> data = files_.data(tensor);
    if (expert) {
      const std::size_t bytes = data.size() / static_cast<std::size_t>(tensor.shape.front());
      data = data.subspan(bytes * static_cast<std::size_t>(*expert), bytes);
    }
    dequantise(std::get<GgmlType>(tensor.type), data, out, tensor_place(location(name), name));
    convert_back(name, out);
  }

  [[nodiscard]] NameTable name_table(const ModelSpec& spec) const override {
    return gguf_name_table(spec);
  }

 private:
  void convert_back(const std::string& name, std::span<float> values) const {
    const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    switch (conversion_) {
      case Conversion::none:
        return;
      case Conversion::interleaved_heads:
        if (is(".attn_q.")) halve_heads(query_heads_, values);
        if (is(".attn_k.")) halve_heads(key_heads_, values);
        return;
      case Conversion::norms_plus_one:
        if (!name.ends_with("norm.weight")) return;
        for (float& value : values) value -= 1;
        return;
    }
  }

  /// Brings the even rows of each head to its first half, and the odd ones to its second.
  void halve_heads(std::int64_t heads, std::span<float> values) const {
    const std::vector<float> stored(values.begin(), values.end());
    const std::size_t head_size = stored.size() / static_cast<std::size_t>(heads);
    const auto rows = static_cast<std::size_t>(head_dim_);
    const std::size_t width = head_size / rows;  // 1 of a bias
    for (std::size_t first = 0; first < stored.size(); first += head_size) {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t to = row % 2 * (rows / 2) + row / 2;
        std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(first + row * width), width,
                    values.begin() + static_cast<std::ptrdiff_t>(first + to * width));
      }
    }
  }

  ModelFiles files_;
  Conversion conversion_;
  std::int64_t query_heads_ = 1;
  std::int64_t key_heads_ = 1;
  std::int64_t head_dim_ = 1;
};

constexpr std::string_view kFactors = "rope_freqs.weight";

/// Angles are divided by these factors, one for each pair, whatever the length.
void set_factors(RopeSpec& rope, std::span<const float> factors) {
  rope.scaling = RopeScalingKind::longrope;
  rope.attention_factor = 1;
  rope.short_attention_factor = 1;
  rope.original_max_position_embeddings = std::numeric_limits<std::int64_t>::max();
  rope.short_factors.assign(factors.begin(), factors.end());
  rope.long_factors = rope.short_factors;
}

}  // namespace

RopeSpec with_stored_factors(RopeSpec rope, const std::filesystem::path& file) {
  const ModelFiles files(file);
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    if (!files.tensors().find(name)) continue;
    throw Error(ErrorCode::invalid_input, "factors by length are not read from GGUF files",
                tensor_place(file.string(), name),
                "run the safetensors, or random weights with --weights random");
  }
  const auto index = files.tensors().find(kFactors);
  if (!index || rope.scaling != RopeScalingKind::none) return rope;
  const TensorInfo tensor = files.tensors()[*index];
  std::vector<float> factors(static_cast<std::size_t>(tensor.elements()));
  dequantise(std::get<GgmlType>(tensor.type), files.data(tensor), factors,
             tensor_place(file.string(), kFactors));
  set_factors(rope, factors);
  return rope;
}

std::unique_ptr<WeightReader> read_gguf(const std::filesystem::path& file, const ModelSpec& spec) {
  return std::make_unique<GgufReader>(file, spec);
}

}  // namespace headroom::checkpoint
