// Weights from a random seed.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "expert_table.h"
#include "random_numbers.h"
#include "weights.h"

namespace headroom::measured {
namespace {

class RandomWeights final : public WeightSource {
 public:
  explicit RandomWeights(std::uint64_t seed) : seed_(seed) {}

  AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                            std::int64_t layer) override {
    AlignedVector<float> values(static_cast<std::size_t>(element_count(shape)));
    fill(weight, shape, SplitMix64(seed_of(weight, layer, seed_)), values);
    return values;
  }
  AlignedVector<float> load_part(const Weight& weight, const std::vector<std::int64_t>& shape,
                                 std::int64_t layer, std::span<const WeightSlice> slices) override {
    AlignedVector<float> values(elements_of(slices));
    for_each_block(slices, [&](const WeightBlock& block) {
      for (std::int64_t i = 0; i < block.rows; ++i) {
        SplitMix64 numbers(seed_of(weight, layer, seed_));
        numbers.skip(block.source_of(i));
        fill(
            weight, shape, numbers,
            std::span(values).subspan(block.target_of(i), static_cast<std::size_t>(block.columns)));
      }
    });
    return values;
  }
  void finish() override {}

 private:
  /// Writes the next of the numbers of `weight`.
  static void fill(const Weight& weight, const std::vector<std::int64_t>& shape, SplitMix64 numbers,
                   std::span<float> values) {
    if (is_expert_table(weight)) {
      for (float& value : values) value = std::floor((numbers.next() + 1) * 0x1p15F);
      return;
    }
    const bool is_norm = weight.role == WeightRole::norm && weight.path.ends_with(".weight");
    // A uniform number in [-√3, √3) has standard deviation 1.
    const float width = std::sqrt(3.0F) * random_deviation(weight, shape);
    for (float& value : values) value = is_norm ? 1.0F : width * numbers.next();
  }

  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<WeightSource> random_weights(std::uint64_t seed) {
  return std::make_unique<RandomWeights>(seed);
}

}  // namespace headroom::measured
