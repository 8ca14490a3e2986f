// Weights from a checkpoint, or from a seed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "headroom/error.h"
#include "weights.h"

namespace headroom::measured {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

/// SplitMix64 (Steele et al. 2014): one multiply-xorshift chain a number, good enough to fill
/// weights and fast enough for billions.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  /// Uniform in [-1, 1).
  float next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    const auto top = static_cast<std::int32_t>((mixed ^ (mixed >> 31U)) >> 32U);
    return static_cast<float>(top) * 0x1p-31F;
  }

 private:
  std::uint64_t state_;
};

class RandomWeights final : public WeightSource {
 public:
  explicit RandomWeights(std::uint64_t seed) : seed_(seed) {}

  AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                            std::int64_t layer) override {
    AlignedVector<float> values(static_cast<std::size_t>(product(shape)));
    SplitMix64 numbers(seed_ ^ std::hash<std::string>{}(weight.path) ^
                       (static_cast<std::uint64_t>(layer) << 40U));
    const bool is_norm = weight.role == WeightRole::norm && weight.path.ends_with(".weight");
    // A uniform number in [-√3, √3) has a standard deviation of 1.
    const float fan_in = static_cast<float>(shape.size() > 1 ? shape.back() : 1024);
    const float width = std::sqrt(3.0F / fan_in);
    for (float& value : values) value = is_norm ? 1.0F : width * numbers.next();
    return values;
  }
  void finish() override {}

 private:
  std::uint64_t seed_;
};

/// Copies `source` [rows, columns] transposed to `out` [columns, rows].
void transpose(const AlignedVector<float>& source, std::int64_t rows, std::int64_t columns,
               AlignedVector<float>& out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      out[static_cast<std::size_t>(c * rows + r)] =
          source[static_cast<std::size_t>(r * columns + c)];
    }
  }
}

bool is_transposed(StoredLayout layout) {
  switch (layout) {
    case StoredLayout::transposed:
    case StoredLayout::transposed_third_0:
    case StoredLayout::transposed_third_1:
    case StoredLayout::transposed_third_2:
      return true;
    case StoredLayout::as_is:
    case StoredLayout::third_0:
    case StoredLayout::third_1:
    case StoredLayout::third_2:
      break;
  }
  return false;
}

/// Which third of the stored rows is wanted; empty when all are.
std::optional<std::int64_t> third_of(StoredLayout layout) {
  switch (layout) {
    case StoredLayout::third_0:
    case StoredLayout::transposed_third_0:
      return 0;
    case StoredLayout::third_1:
    case StoredLayout::transposed_third_1:
      return 1;
    case StoredLayout::third_2:
    case StoredLayout::transposed_third_2:
      return 2;
    case StoredLayout::as_is:
    case StoredLayout::transposed:
      break;
  }
  return std::nullopt;
}

class CheckpointWeights final : public WeightSource {
 public:
  CheckpointWeights(const ModelSpec& spec, Checkpoint checkpoint)
      : names_(checkpoint_names(spec)), checkpoint_(std::move(checkpoint)) {}

  AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                            std::int64_t layer) override {
    const StoredName stored = stored_name(names_, weight.path, layer);
    const StoredTensor& tensor = find(stored.name);
    const std::string place = tensor_place(checkpoint_.location(tensor.name), tensor.name);
    const auto third = third_of(stored.layout);
    const std::int64_t wanted = product(shape);
    const std::int64_t whole = wanted * (third ? 3 : 1);
    if (product(tensor.shape) != whole) {
      throw Error(
          ErrorCode::invalid_input,
          fmt::format("has shape [{}], but {} needs {} values for [{}]",
                      fmt::join(tensor.shape, ", "), weight.path, whole, fmt::join(shape, ", ")),
          place, "check that config.json and weights belong together");
    }
    AlignedVector<float> values(static_cast<std::size_t>(whole));
    copy_as_float32(tensor, values, place);
    if (is_transposed(stored.layout) && tensor.shape.size() == 2) {
      AlignedVector<float> turned(values.size());
      transpose(values, tensor.shape[0], tensor.shape[1], turned);
      values = std::move(turned);
    }
    if (third) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(*third * wanted);
      values = AlignedVector<float>(begin, begin + static_cast<std::ptrdiff_t>(wanted));
    }
    used_.insert(tensor.name);
    return values;
  }

  void finish() override {
    for (const std::string& name : checkpoint_.names()) {
      const bool ignored = std::ranges::any_of(
          names_.ignored_endings, [&](std::string_view ending) { return name.ends_with(ending); });
      if (ignored || used_.contains(name)) continue;
      throw Error(ErrorCode::invalid_input, "the model has no place for this tensor",
                  tensor_place(checkpoint_.location(name), name),
                  "check that config.json and weights belong together");
    }
  }

 private:
  [[nodiscard]] const StoredTensor& find(const std::string& name) const {
    for (const std::string& candidate : {name, std::string(names_.optional_prefix) + name}) {
      if (const StoredTensor* tensor = checkpoint_.find(candidate)) return *tensor;
    }
    throw Error(ErrorCode::invalid_input, "the tensor is missing",
                tensor_place(checkpoint_.location(name), name),
                "check that config.json and weights belong together");
  }

  NameTable names_;
  Checkpoint checkpoint_;
  std::set<std::string> used_;
};

}  // namespace

std::unique_ptr<WeightSource> random_weights(std::uint64_t seed) {
  return std::make_unique<RandomWeights>(seed);
}

std::unique_ptr<WeightSource> checkpoint_weights(const ModelSpec& spec, Checkpoint checkpoint) {
  return std::make_unique<CheckpointWeights>(spec, std::move(checkpoint));
}

}  // namespace headroom::measured
