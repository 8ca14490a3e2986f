// Where every weight of a model lies in a checkpoint: name, shape, and the part of the tensor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"
#include "headroom/model_spec.h"
#include "names.h"
#include "stored/stored_layout.h"

namespace headroom::detail {

/// What is the same for the places of a weight in all layers.
struct WeightPattern {
  StoredName name;
  StackRange range;
  MatrixShape wanted;        ///< sizes of the weight, or of one expert of it
  MatrixShape stored;        ///< sizes of the tensor, or of one expert of it
  std::int64_t experts = 1;  ///< how many the weight has

  /// How many tensors hold one layer's weight: one, or one an expert.
  [[nodiscard]] std::int64_t tensors() const;
  /// Elements of the weight that one tensor holds.
  [[nodiscard]] std::int64_t elements() const;
  /// WeightPlace::fits, for any layer.
  [[nodiscard]] bool fits(std::span<const std::int64_t> shape) const;
};

/// One tensor that holds a weight, or one expert of it.
struct WeightPlace {
  std::string name;                    ///< without an optional prefix
  std::optional<std::int64_t> expert;  ///< which of the experts that the tensor stacks
  StoredLayout layout;
  StackRange range;
  MatrixShape wanted;        ///< sizes of the weight, or of one expert of it
  MatrixShape stored;        ///< sizes of the tensor, or of one expert of it
  std::int64_t experts = 1;  ///< how many the weight has

  /// Whether a tensor of this shape can be the one that is meant. Dimensions of 1 do not count, and
  /// what a convolution keeps apart is one dimension here.
  [[nodiscard]] bool fits(std::span<const std::int64_t> shape) const;
};

/// All tensors that together hold one weight: one, or one an expert.
using PlaceList = std::vector<WeightPlace>;

class WeightPlaces {
 public:
  /// Throws Error{invalid_input} for a family without stored weights, Error{internal} when `table`
  /// lacks one of the model's weights.
  WeightPlaces(const ModelSpec& spec, const Graph& graph, NameTable table);

  /// The places of the weight `path` in layer `layer`, by preference: the first of which the
  /// tensors are there counts.
  [[nodiscard]] std::vector<PlaceList> of(std::string_view path, std::int64_t layer) const;

  /// The names and sizes of the weight `path` in every layer, by preference.
  [[nodiscard]] std::span<const WeightPattern> patterns(std::string_view path) const;

  [[nodiscard]] const NameTable& table() const noexcept { return table_; }

 private:
  using Shapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

  [[nodiscard]] WeightPattern pattern_of(const ModelSpec& spec, const Shapes& shapes,
                                         const std::string& path, const StoredName& name) const;
  [[nodiscard]] StackRange range_of(const ModelSpec& spec, const Shapes& shapes,
                                    const std::string& path, const StoredName& name) const;

  NameTable table_;
  std::map<std::string, std::vector<WeightPattern>, std::less<>> patterns_;
};

}  // namespace headroom::detail
