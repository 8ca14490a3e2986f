// Reads GGUF tensors as in the family's original checkpoints.
// Source of the converter's changes: convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ggml_values.h"
#include "headroom/error.h"
#include "mapped_file.h"
#include "model_files.h"
#include "setting_format.h"
#include "stored/stored_form.h"
#include "weight_reader.h"

namespace headroom::detail {
namespace {

class GgufReader final : public WeightReader {
 public:
  GgufReader(const std::filesystem::path& file, const ModelSpec& spec)
      : files_(file), conversion_(gguf_conversion(spec, file.string())) {
    const AttentionSpec& attention = spec.main_stack().self_attention;
    head_dim_ = attention.head_dim;
    const RopeSpec& rope = spec.position.rope;
    rotary_dim_ = rope.rotary_dim == 0 ? head_dim_ : rope.rotary_dim;
    const bool has_sections = rope.axes != RopeAxes::sequence;
    if (conversion_ == GgufConversion::split_pairs && !has_sections) {
      conversion_ = GgufConversion::none;
    }
    delta_ = delta_of(spec.main_stack());
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
    const checkpoint::TensorInfo tensor = require(name);
    const std::span<const std::byte> data = data_of(tensor, expert);
    checkpoint::dequantise(std::get<checkpoint::GgmlType>(tensor.type), data, out,
                           checkpoint::tensor_place(location(name), name));
    checkpoint::release_pages(data);
    convert_back(name, out);
  }

  [[nodiscard]] std::optional<checkpoint::GgmlType> ggml_type(
      const std::string& name) const override {
    const auto index = files_.tensors().find(name);
    if (!index) return std::nullopt;
    return std::get<checkpoint::GgmlType>(files_.tensors()[*index].type);
  }

  /// The values of this one's rows are in another order.
  [[nodiscard]] bool has_original_rows(const std::string& name) const override {
    return conversion_ != GgufConversion::tiled_value_heads ||
           name.find(".ssm_out.") == std::string::npos;
  }

  [[nodiscard]] std::vector<std::byte> read_blocks(
      const std::string& name, std::optional<std::int64_t> expert) const override {
    const checkpoint::TensorInfo tensor = require(name);
    const std::span<const std::byte> data = data_of(tensor, expert);
    checkpoint::require_values(std::get<checkpoint::GgmlType>(tensor.type), data,
                               checkpoint::tensor_place(location(name), name));
    std::vector<std::byte> blocks;
    blocks.reserve(data.size());
    constexpr std::size_t kPart = std::size_t{4} << 20U;  // of the mapped file and its copy at once
    for (std::size_t at = 0; at < data.size(); at += kPart) {
      const auto part = data.subspan(at, std::min(kPart, data.size() - at));
      blocks.insert(blocks.end(), part.begin(), part.end());
      checkpoint::release_pages(part);
    }
    reorder_rows(name, std::span(blocks));
    return blocks;
  }

  void require_unchanged() const override { files_.require_unchanged(); }

  [[nodiscard]] NameTable name_table(const ModelSpec& spec) const override {
    return gguf_name_table(spec);
  }

 private:
  [[nodiscard]] checkpoint::TensorInfo require(const std::string& name) const {
    const auto index = files_.tensors().find(name);
    if (!index) throw Error(ErrorCode::internal, "reading a missing tensor");
    return files_.tensors()[*index];
  }

  /// Bytes of a tensor, or of one of its stacked experts.
  [[nodiscard]] std::span<const std::byte> data_of(const checkpoint::TensorInfo& tensor,
                                                   std::optional<std::int64_t> expert) const {
    const std::span<const std::byte> data = files_.data(tensor);
    if (!expert) return data;
    const std::size_t bytes = data.size() / static_cast<std::size_t>(tensor.shape.front());
    return data.subspan(bytes * static_cast<std::size_t>(*expert), bytes);
  }

  /// The sizes of the gated delta layers; those of no layer if the stack has none.
  static GatedDeltaSpec delta_of(const StackSpec& stack) {
    for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
      const auto& delta = stack.attention_of(variant).gated_delta;
      if (delta) return *delta;
    }
    return {};
  }

  void convert_back(const std::string& name, std::span<float> values) const {
    if (name.ends_with(".ssm_a")) {
      for (float& value : values) value = std::log(-value);
    }
    const bool shifts_norms = conversion_ == GgufConversion::norms_plus_one ||
                              conversion_ == GgufConversion::tiled_value_heads;
    if (shifts_norms) subtract_one(name, values);
    reorder_rows(name, values);
  }

  /// Restores the order of rows; T is float, or std::byte for rows of blocks.
  template <class T>
  void reorder_rows(const std::string& name, std::span<T> values) const {
    const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    switch (conversion_) {
      case GgufConversion::none:
      case GgufConversion::unknown:
      case GgufConversion::norms_plus_one:
        return;
      case GgufConversion::interleaved_heads:
        if (is(".attn_q.") || is(".attn_k.")) {
          move_rows(require(name).shape.front(), values, [this](std::size_t row) {
            return row % 2 * (head_rows() / 2) + row / 2;  // even rows to the first half
          });
        }
        return;
      case GgufConversion::split_pairs:
        if (is(".attn_q.") || is(".attn_k.")) {
          move_rows(require(name).shape.front(), values,
                    [this](std::size_t row) { return row_of_pair(row); });
        }
        return;
      case GgufConversion::tiled_value_heads:
        group_value_heads(name, values);
        return;
    }
  }

  static void subtract_one(const std::string& name, std::span<float> values) {
    // The norm of a state space's output has a plain weight.
    if (!name.ends_with("norm.weight") || name.ends_with("ssm_norm.weight")) return;
    for (float& value : values) value -= 1;
  }

  /// Orders value heads by their key head first.
  template <class T>
  void group_value_heads(const std::string& name, std::span<T> values) const {
    const auto is = [&](std::string_view part) { return name.find(part) != std::string::npos; };
    const auto keys = static_cast<std::size_t>(2 * delta_.num_key_heads * delta_.key_head_dim);
    const auto heads = static_cast<std::size_t>(delta_.num_value_heads);
    const auto inner = heads * static_cast<std::size_t>(delta_.value_head_dim);
    if (is(".attn_qkv.") || is(".ssm_conv1d.")) {  // after the queries and keys
      group_heads(values.subspan(values.size() / (keys + inner) * keys));
    } else if (is(".attn_gate.") || is(".ssm_beta.") || is(".ssm_alpha.") || is(".ssm_dt.") ||
               name.ends_with(".ssm_a")) {
      group_heads(values);
    } else if (is(".ssm_out.")) {  // along its input
      for (std::size_t row = 0; row < values.size(); row += inner) {
        group_heads(values.subspan(row, inner));
      }
    }
  }

  /// Moves head i of key head k from (i, k) to (k, i).
  template <class T>
  void group_heads(std::span<T> values) const {
    const std::vector<T> stored(values.begin(), values.end());
    const auto keys = static_cast<std::size_t>(delta_.num_key_heads);
    const auto heads = static_cast<std::size_t>(delta_.num_value_heads);
    const std::size_t size = stored.size() / heads;
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t to = head % keys * (heads / keys) + head / keys;
      std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(head * size), size,
                  values.begin() + static_cast<std::ptrdiff_t>(to * size));
    }
  }

  [[nodiscard]] std::size_t head_rows() const { return static_cast<std::size_t>(head_dim_); }

  /// The original row of a head's stored row, where pairs that turn are neighbours.
  [[nodiscard]] std::size_t row_of_pair(std::size_t row) const {
    const auto rotary = static_cast<std::size_t>(rotary_dim_);
    if (row >= rotary) return row;
    return row < rotary / 2 ? 2 * row : 2 * (row - rotary / 2) + 1;
  }

  /// Moves row i of each head to row place_of(i). The tensor has `all_rows`, since layers may
  /// differ in heads.
  template <class T, class PlaceOf>
  void move_rows(std::int64_t all_rows, std::span<T> values, const PlaceOf& place_of) const {
    const std::vector<T> stored(values.begin(), values.end());
    const std::size_t rows = head_rows();
    const std::size_t width = stored.size() / static_cast<std::size_t>(all_rows);  // 1 for a bias
    const std::size_t head_size = rows * width;
    for (std::size_t first = 0; first < stored.size(); first += head_size) {
      for (std::size_t row = 0; row < rows; ++row) {
        std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(first + row * width), width,
                    values.begin() + static_cast<std::ptrdiff_t>(first + place_of(row) * width));
      }
    }
  }

  checkpoint::ModelFiles files_;
  GgufConversion conversion_;
  std::int64_t head_dim_ = 1;
  std::int64_t rotary_dim_ = 1;  ///< leading dimensions of a head that turn
  GatedDeltaSpec delta_;
};

constexpr std::string_view kFactors = "rope_freqs.weight";

/// Divides the rotary angles by these factors, one per pair, at every length.
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
  const checkpoint::ModelFiles files(file);
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    if (!files.tensors().find(name)) continue;
    throw Error(ErrorCode::invalid_input, "LongRoPE factors are not supported in GGUF files",
                checkpoint::tensor_place(file.string(), name),
                fmt::format("use the safetensors files, or set {} to random", Setting::weights));
  }
  const auto index = files.tensors().find(kFactors);
  if (!index || rope.scaling != RopeScalingKind::none) return rope;
  const checkpoint::TensorInfo tensor = files.tensors()[*index];
  std::vector<float> factors(static_cast<std::size_t>(tensor.elements()));
  checkpoint::dequantise(std::get<checkpoint::GgmlType>(tensor.type), files.data(tensor), factors,
                         checkpoint::tensor_place(file.string(), kFactors));
  files.require_unchanged();
  // Gemma 4 marks dimensions that do not rotate so; its config tells them.
  constexpr float kNotRotated = 1e30F;
  if (std::ranges::find(factors, kNotRotated) != factors.end()) return rope;
  set_factors(rope, factors);
  return rope;
}

std::unique_ptr<WeightReader> read_gguf(const std::filesystem::path& file, const ModelSpec& spec) {
  return std::make_unique<GgufReader>(file, spec);
}

}  // namespace headroom::detail
