// Location of every weight in a checkpoint: name, shape, and part of the tensor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/graph.h"
#include "headroom/model_spec.h"
#include "stored/names.h"
#include "stored/stored_layout.h"

namespace headroom::detail {

/// The location of a weight, common to all layers.
struct WeightPattern {
  StoredName name;
  StackRange range;
  MatrixShape wanted;        ///< sizes of the weight, or of one of its experts
  MatrixShape stored;        ///< sizes of the tensor, or of one of its experts
  std::int64_t experts = 1;  ///< experts in the weight
  std::int64_t joined = 1;   ///< tensors whose rows together are the weight

  /// Number of tensors for one layer's weight: one, one per expert, or those that are joined.
  [[nodiscard]] std::int64_t tensors() const;
  /// Elements of the weight in one tensor, whose shape is `shape`.
  [[nodiscard]] std::int64_t elements(std::span<const std::int64_t> shape) const;
  /// As WeightPlace::fits, for any layer.
  [[nodiscard]] bool fits(std::span<const std::int64_t> shape) const;
};

/// A tensor that stores a weight, or one expert of it.
struct WeightPlace {
  std::string name;                    ///< without an optional prefix
  std::optional<std::int64_t> expert;  ///< index among the tensor's stacked experts
  StoredLayout layout;
  StackRange range;
  MatrixShape wanted;        ///< sizes of the weight, or of one of its experts
  MatrixShape stored;        ///< sizes of the tensor, or of one of its experts
  std::int64_t experts = 1;  ///< experts in the weight
  std::int64_t joined = 1;   ///< tensors whose rows together are the weight

  /// Returns true if a tensor of this shape can store the weight. Dimensions of 1 do not count, and
  /// the kernel dimensions of a convolution count as one, as do both of a grid of rows. A joined
  /// tensor has at most its rows.
  [[nodiscard]] bool fits(std::span<const std::int64_t> shape) const;
  /// A joined tensor's place, with the sizes of the tensor itself.
  [[nodiscard]] WeightPlace sized_as(std::span<const std::int64_t> shape) const;
};

/// All tensors of one weight: one, or one per expert.
using PlaceList = std::vector<WeightPlace>;

class WeightPlaces {
 public:
  /// Throws Error{invalid_input} if the family has no stored weights, Error{internal} if `table`
  /// lacks one of the model's weights.
  WeightPlaces(const ModelSpec& spec, const Graph& graph, NameTable table);

  /// Candidate locations of `weight` in layer `layer`, by preference: the first whose tensors exist
  /// applies.
  [[nodiscard]] std::vector<PlaceList> of(const Weight& weight, std::int64_t layer) const;

  /// Names and sizes of `weight` in every layer of its shape, by preference. Layers of different
  /// kinds may have weights of one path and several shapes, and stack them with others.
  [[nodiscard]] std::span<const WeightPattern> patterns(const Weight& weight) const;

  [[nodiscard]] const NameTable& table() const noexcept { return table_; }

 private:
  using Shapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

  /// Adds the places of `weight`, where the weights of its layer have `shapes`.
  void add_patterns(const ModelSpec& spec, const Shapes& shapes, const Weight& weight);
  [[nodiscard]] WeightPattern pattern_of(const ModelSpec& spec, const Shapes& shapes,
                                         const std::string& path, const StoredName& name) const;
  [[nodiscard]] StackRange range_of(const ModelSpec& spec, const Shapes& shapes,
                                    const std::string& path, const StoredName& name) const;

  NameTable table_;
  Bindings sizes_;
  /// By path and shape.
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::vector<WeightPattern>> patterns_;
};

}  // namespace headroom::detail
