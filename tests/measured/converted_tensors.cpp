#include "measured/converted_tensors.h"

namespace headroom::test {
namespace {

using nlohmann::json;

/// LlamaModel.permute: reshape(heads, 2, rows / 2, …), swap axes 1 and 2, and reshape back.
void permute(ConvertedTensor& tensor, std::int64_t heads) {
  const std::int64_t width = std::ssize(tensor.values) / tensor.shape.front();
  const std::int64_t half = tensor.shape.front() / heads / 2;
  std::vector<float> out;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t row = 0; row < half; ++row) {
      for (std::int64_t side = 0; side < 2; ++side) {
        const auto from = tensor.values.begin() + ((head * 2 + side) * half + row) * width;
        out.insert(out.end(), from, from + width);
      }
    }
  }
  tensor.values = std::move(out);
}

}  // namespace

bool has(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

void rename(ConvertedTensors& tensors, const std::string& from, const std::string& to) {
  auto node = tensors.extract(from);
  node.key() = to;
  tensors.insert(std::move(node));
}

std::vector<std::string> names_of(const ConvertedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

ConvertedTensor rows_of(const ConvertedTensor& tensor, std::int64_t first, std::int64_t count) {
  const std::int64_t width = std::ssize(tensor.values) / tensor.shape.front();
  ConvertedTensor part{tensor.shape, {}};
  part.shape.front() = count;
  part.values.assign(tensor.values.begin() + first * width,
                     tensor.values.begin() + (first + count) * width);
  return part;
}

void permute_queries_and_keys(const json& config, ConvertedTensors& tensors) {
  const std::int64_t heads = config.at("num_attention_heads");
  const std::int64_t groups = config.value("num_key_value_heads", heads);
  for (auto& [name, tensor] : tensors) {
    if (has(name, "q_proj.")) permute(tensor, heads);
    if (has(name, "k_proj.")) permute(tensor, groups);
  }
}

void transpose_last(ConvertedTensor& tensor) {
  const std::int64_t rows = tensor.shape[1];
  const std::int64_t columns = tensor.shape[2];
  std::vector<float> out;
  for (auto from = tensor.values.begin(); from != tensor.values.end(); from += rows * columns) {
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t row = 0; row < rows; ++row) out.push_back(from[row * columns + column]);
    }
  }
  tensor.values = std::move(out);
  std::swap(tensor.shape[1], tensor.shape[2]);
}

void squeeze(ConvertedTensor& tensor) {
  std::erase(tensor.shape, 1);
  if (tensor.shape.empty()) tensor.shape = {1};
}

std::vector<bool> typed_layers(const json& config, std::string_view type) {
  std::vector<bool> layers;
  for (const json& one : config.at("layer_types")) layers.push_back(one == type);
  return layers;
}

void split_key_values(const nlohmann::json& config, ConvertedTensors& tensors) {
  const std::int64_t heads = config.at("num_attention_heads");
  const std::int64_t rank = config.at("kv_lora_rank");
  const std::int64_t nope = config.at("qk_nope_head_dim");
  const std::int64_t width = config.at("v_head_dim");
  for (const std::string& name : names_of(tensors)) {
    if (!name.ends_with("kv_b_proj.weight")) continue;
    const ConvertedTensor both = tensors.extract(name).mapped();
    const std::string block = name.substr(0, name.find("kv_b_proj"));
    const auto middle = both.values.begin() + heads * nope * rank;
    tensors[block + "k_b_proj.weight"] = {{heads, rank, nope}, {both.values.begin(), middle}};
    tensors[block + "v_b_proj.weight"] = {{heads, width, rank}, {middle, both.values.end()}};
  }
}

}  // namespace headroom::test
