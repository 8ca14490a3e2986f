// Random weights in the blocks of a model's storage.
#include <cmath>
#include <span>

#include "ggml_values.h"
#include "random_blocks.h"
#include "weight_formats.h"
#include "weights.h"

namespace headroom::measured {
namespace {

using checkpoint::GgmlType;

/// The type with this name and kernels.
std::optional<GgmlType> type_with_kernels(std::string_view name) {
  for (const checkpoint::GgmlTypeInfo& type : checkpoint::ggml_types()) {
    if (type.name == name && has_block_kernels(type.type)) return type.type;
  }
  return std::nullopt;
}

class RandomBlocks final : public WeightSource {
 public:
  RandomBlocks(const ModelSpec& spec, std::uint64_t seed)
      : spec_(spec),
        graph_(build_graph(spec_, all_parts())),
        formats_(spec_, graph_),
        others_(random_weights(seed)),
        seed_(seed) {}

  AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                            std::int64_t layer) override {
    if (!type_of(weight, shape, layer).blocks) return others_->load(weight, shape, layer);
    const StoredBlocks blocks = load_blocks(weight, shape, layer);
    AlignedVector<float> values(static_cast<std::size_t>(element_count(shape)));
    checkpoint::dequantise(blocks.type, blocks.bytes, values, weight.path);
    return values;
  }

  [[nodiscard]] SourceType type_of(const Weight& weight, const std::vector<std::int64_t>& shape,
                                   std::int64_t layer) const override {
    if (shape.size() < 2) return {};
    const std::string& name = formats_.of(weight, layer).name;
    const auto type = type_with_kernels(name);
    const bool whole = type && shape.back() % checkpoint::info(*type).block_size == 0;
    return {name == "F32" ? "" : name, whole ? type : std::nullopt,
            whole ? StoredForm::blocks : StoredForm::values_only};
  }

  StoredBlocks load_blocks(const Weight& weight, const std::vector<std::int64_t>& shape,
                           std::int64_t layer) override {
    SplitMix64 numbers(seed_of(weight, layer, seed_));
    const float deviation = 1 / std::sqrt(static_cast<float>(shape.back()));
    return random_block_values(*type_of(weight, shape, layer).blocks, element_count(shape),
                               deviation, numbers);
  }

  void finish() override {}

 private:
  ModelSpec spec_;
  Graph graph_;
  detail::WeightFormats formats_;
  std::unique_ptr<WeightSource> others_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<WeightSource> random_blocks(const ModelSpec& spec, std::uint64_t seed) {
  return std::make_unique<RandomBlocks>(spec, seed);
}

}  // namespace headroom::measured
