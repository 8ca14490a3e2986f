// Random weights in the blocks or groups of a model's storage.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "ggml_values.h"
#include "gguf_mix.h"
#include "module_kind.h"
#include "random_blocks.h"
#include "random_groups.h"
#include "weight_formats.h"
#include "weights.h"

namespace headroom::measured {
namespace {

using checkpoint::GgmlType;
using checkpoint::GroupedWeights;
using headroom::detail::GroupFormat;
using Shape = std::vector<std::int64_t>;

/// The type of this format, if it has kernels.
std::optional<GgmlType> type_with_kernels(std::string_view format) {
  const auto type = headroom::detail::ggml_type_of(format);
  return type && has_block_kernels(*type) ? type : std::nullopt;
}

class RandomStored final : public WeightSource {
 public:
  RandomStored(const ModelSpec& spec, std::uint64_t seed)
      : spec_(spec),
        graph_(build_graph(spec_, all_parts())),
        formats_(spec_, graph_),
        in_groups_(headroom::detail::runs_in_groups(spec_)),
        others_(random_weights(seed)),
        seed_(seed) {}

  AlignedVector<float> load(const Weight& weight, const Shape& shape, std::int64_t layer) override {
    const SourceType type = type_of(weight, shape, layer);
    switch (type.form) {
      case StoredForm::values_only:
        break;
      case StoredForm::blocks:
        return values_of_blocks(weight, shape, layer);
      case StoredForm::groups:
        return values_of_groups(load_groups(weight, shape, layer), element_count(shape));
    }
    return others_->load(weight, shape, layer);
  }

  [[nodiscard]] SourceType type_of(const Weight& weight, const Shape& shape,
                                   std::int64_t layer) const override {
    if (in_groups_) return type_in_groups(weight, shape, layer);
    if (shape.size() < 2) return {};
    const std::string& name = formats_.of(weight, layer).name;
    const auto type = type_with_kernels(name);
    const bool whole = type && shape.back() % checkpoint::info(*type).block_size == 0;
    return {name_unless_float32(name), whole ? type : std::nullopt,
            whole ? StoredForm::blocks : StoredForm::values_only};
  }

  StoredBlocks load_blocks(const Weight& weight, const Shape& shape, std::int64_t layer) override {
    SplitMix64 numbers(seed_of(weight, layer, seed_));
    return random_block_values(*type_of(weight, shape, layer).blocks, element_count(shape),
                               random_deviation(weight, shape), numbers);
  }

  /// One matrix for each expert.
  StoredGroups load_groups(const Weight& weight, const Shape& shape, std::int64_t layer) override {
    const GroupFormat format = groups_of(weight, shape, layer).value();
    StoredGroups groups;
    if (format.scales == headroom::detail::GroupScales::none) {
      groups.push_back(in_16_bits(weight, shape, layer, format));
      return groups;
    }
    SplitMix64 numbers(seed_of(weight, layer, seed_));
    const std::int64_t matrices = shape.size() > 2 ? shape.front() : 1;
    const std::int64_t rows = element_count(shape) / shape.back() / matrices;
    for (std::int64_t i = 0; i < matrices; ++i) {
      groups.push_back(
          random_groups(format, rows, shape.back(), random_deviation(weight, shape), numbers));
    }
    return groups;
  }

  /// Bytes as the model's storage states them; of weights in blocks, as they are held.
  std::optional<std::int64_t> count_file_bytes(const Weight& weight, std::int64_t layer) override {
    if (!in_groups_) return std::nullopt;
    const auto sizes = headroom::detail::matrix_sizes(weight, graph_.sizes);
    return checked_int64(
        checked_multiply(sizes.experts, formats_.of(weight, layer).bytes(sizes.out, sizes.in)));
  }

  void finish() override {}

 private:
  static std::string name_unless_float32(const std::string& name) {
    return name == "F32" ? std::string() : name;
  }

  [[nodiscard]] SourceType type_in_groups(const Weight& weight, const Shape& shape,
                                          std::int64_t layer) const {
    const bool stays = groups_of(weight, shape, layer).has_value();
    return {name_unless_float32(formats_.of(weight, layer).name), std::nullopt,
            stays ? StoredForm::groups : StoredForm::values_only};
  }

  /// The form of a matrix that kernels read in groups; empty for others.
  [[nodiscard]] std::optional<GroupFormat> groups_of(const Weight& weight, const Shape& shape,
                                                     std::int64_t layer) const {
    if (shape.size() < 2 || weight.role == WeightRole::convolution) return std::nullopt;
    const auto format = headroom::detail::group_format_of(formats_.of(weight, layer));
    const bool fits = format && headroom::detail::fits_rows(*format, shape.back());
    return fits ? format : std::nullopt;
  }

  AlignedVector<float> values_of_blocks(const Weight& weight, const Shape& shape,
                                        std::int64_t layer) {
    const StoredBlocks blocks = load_blocks(weight, shape, layer);
    AlignedVector<float> values(static_cast<std::size_t>(element_count(shape)));
    checkpoint::dequantise(blocks.type, blocks.bytes, values, weight.path);
    return values;
  }

  static AlignedVector<float> values_of_groups(const StoredGroups& groups, std::int64_t count) {
    AlignedVector<float> values(static_cast<std::size_t>(count));
    std::span<float> rest(values);
    for (const GroupedWeights& matrix : groups) {
      const auto columns = static_cast<std::size_t>(matrix.columns);
      for (std::int64_t row = 0; row < matrix.rows; ++row) {
        checkpoint::dequantise_row(matrix, row, rest.first(columns));
        rest = rest.subspan(columns);
      }
    }
    return values;
  }

  /// The numbers of random float32 weights, rounded. Draws some rows at a time.
  GroupedWeights in_16_bits(const Weight& weight, const Shape& shape, std::int64_t layer,
                            const GroupFormat& format) {
    constexpr std::int64_t kValuesAtOnce = 1 << 20;
    const std::int64_t columns = shape.back();
    const std::int64_t rows = element_count(shape) / columns;
    const Shape matrix{rows, columns};
    GroupedWeights groups = empty_groups(format, rows, columns);
    groups.codes.resize(static_cast<std::size_t>(rows * groups.row_bytes()));
    std::byte* to = groups.codes.data();
    const std::int64_t some = std::max<std::int64_t>(1, kValuesAtOnce / columns);
    for (std::int64_t row = 0; row < rows; row += some) {
      const WeightSlice slices[] = {{row, std::min(some, rows - row), rows}, {0, columns, columns}};
      for (const float value : others_->load_part(weight, matrix, layer, slices)) {
        const std::uint16_t bits = bits_of_16(groups.kind, value);
        std::memcpy(to, &bits, sizeof bits);
        to += sizeof bits;
      }
    }
    return groups;
  }

  ModelSpec spec_;
  Graph graph_;
  headroom::detail::WeightFormats formats_;
  bool in_groups_;
  std::unique_ptr<WeightSource> others_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<WeightSource> random_stored(const ModelSpec& spec, std::uint64_t seed) {
  return std::make_unique<RandomStored>(spec, seed);
}

}  // namespace headroom::measured
