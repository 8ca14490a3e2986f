#include "weight_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

std::vector<std::int64_t> shape_of(const Weight& weight, const Bindings& sizes) {
  std::vector<std::int64_t> shape;
  for (const Expr& size : weight.shape) {
    shape.push_back(size.evaluate_int64(sizes));
  }
  return shape;
}

bool is_per_expert(const StoredName& name) {
  return name.layout.experts == ExpertStorage::stacked || names_experts(name.pattern);
}

/// Sizes of a weight, or of one of its experts.
MatrixShape wanted_shape(std::span<const std::int64_t> shape, const StoredName& name) {
  return matrix_shape(is_per_expert(name) ? shape.subspan(1) : shape);
}

std::int64_t stacked_size(MatrixShape shape, StackAxis axis) {
  return axis == StackAxis::out ? shape.rows : shape.columns;
}

std::int64_t key_value_heads(const ModelSpec& spec, std::string_view path) {
  const bool in_encoder = spec.encoder && path.starts_with("encoder.");
  const StackSpec& stack = in_encoder ? *spec.encoder : spec.main_stack();
  return stack.self_attention.num_key_value_heads;
}

std::int64_t delta_key_heads(const StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const auto& delta = stack.attention_of(variant).gated_delta;
    if (delta) return delta->num_key_heads;
  }
  return 1;
}

std::int64_t groups_of(const ModelSpec& spec, std::string_view path, Stacking stacking,
                       std::int64_t size) {
  switch (stacking) {
    case Stacking::alone:
    case Stacking::whole:
    case Stacking::padded:
      return 1;
    case Stacking::per_key_value_head:
      return key_value_heads(spec, path);
    case Stacking::per_query_head:
      return spec.main_stack().self_attention.num_attention_heads;
    case Stacking::per_delta_key_head:
      return delta_key_heads(spec.main_stack());
    case Stacking::per_quarter:
      return 4;
    case Stacking::per_index:
      return size;
  }
  return 1;
}

/// Rows of a padded tensor that holds `rows` of them.
std::int64_t padded_size(std::int64_t rows) {
  if (rows > std::numeric_limits<std::int64_t>::max() - kPaddedRows) return rows;
  return (rows + kPaddedRows - 1) / kPaddedRows * kPaddedRows;
}

/// The dimensions other than 1.
std::vector<std::int64_t> squeezed(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> sizes;
  std::ranges::copy_if(shape, std::back_inserter(sizes),
                       [](std::int64_t size) { return size != 1; });
  return sizes;
}

/// Returns true if `shape` is [a, b, columns] with a·b rows: a grid of rows.
bool is_grid_of(std::span<const std::int64_t> shape, MatrixShape stored) {
  std::int64_t rows = 0;
  return shape.size() == 3 && shape[2] == stored.columns &&
         !__builtin_mul_overflow(shape[0], shape[1], &rows) && rows == stored.rows;
}

/// Returns true if `shape` is a vector with the elements of the matrix (RWKV-7's bonus in GGUF).
bool is_row_after_row(std::span<const std::int64_t> shape, MatrixShape stored) {
  std::int64_t elements = 0;
  return shape.size() == 1 && !__builtin_mul_overflow(stored.rows, stored.columns, &elements) &&
         elements == shape[0];
}

/// Returns true if `shape` has the rows of all experts, one expert after the other (Nomic Embed).
bool is_rows_of_experts(std::span<const std::int64_t> shape, MatrixShape stored,
                        std::int64_t experts) {
  std::int64_t rows = 0;
  return shape.size() == 2 && shape[1] == stored.columns &&
         !__builtin_mul_overflow(experts, stored.rows, &rows) && rows == shape[0];
}

/// Returns true if `shape` stacks `experts` matrices of shape `stored`; see WeightPlace::fits.
bool fits_shape(std::span<const std::int64_t> shape, MatrixShape stored, std::int64_t experts) {
  if (experts == 1 && is_grid_of(shape, stored)) return true;
  if (experts == 1 && is_row_after_row(shape, stored)) return true;
  if (is_rows_of_experts(shape, stored, experts)) return true;
  // One expert is read as an element of the first dimension.
  if (experts > 1 && (shape.empty() || shape.front() != experts)) return false;
  std::vector<std::int64_t> sizes = squeezed(shape);
  const std::vector<std::int64_t> needed =
      squeezed(std::vector{experts, stored.rows, stored.columns});
  while (sizes.size() > needed.size() && sizes.size() > 1) {
    const std::int64_t last = sizes.back();
    sizes.pop_back();
    if (__builtin_mul_overflow(sizes.back(), last, &sizes.back())) return false;
  }
  return sizes == needed;
}

/// matrix_shape without sizes of 1 before the rows.
MatrixShape matrix_of_rows(std::span<const std::int64_t> shape) {
  while (shape.size() > 2 && shape.front() == 1) shape = shape.subspan(1);
  return matrix_shape(shape);
}

/// Returns true if a tensor of this shape can be some rows of a matrix of shape `whole`.
bool fits_rows(std::span<const std::int64_t> shape, MatrixShape whole) {
  const MatrixShape part = matrix_of_rows(shape);
  return part.columns == whole.columns && part.rows <= whole.rows;
}

using Shapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// Shapes of the weights of each layer in the graph's order: a path that occurs again begins the
/// next layer.
std::vector<Shapes> shapes_by_layer(const Graph& graph) {
  std::vector<Shapes> layers(1);
  for (const Weight& weight : graph.weights) {
    if (layers.back().contains(weight.path)) layers.emplace_back();
    layers.back().emplace(weight.path, shape_of(weight, graph.sizes));
  }
  return layers;
}

/// Returns whether both are the rows of tensors with one name.
bool is_same_place(const WeightPattern& a, const WeightPattern& b) {
  return a.name.pattern == b.name.pattern && a.name.layout == b.name.layout && a.range == b.range;
}

/// Replaces {block n} by the first layer that uses shared block n.
std::string with_first_layers(const ModelSpec& spec, std::string pattern) {
  const auto& shared = spec.main_stack().shared_block;
  if (!shared) return pattern;
  for (std::int64_t block = 0; block < shared->num_blocks; ++block) {
    const std::string placeholder = fmt::format("{{block {}}}", block);
    const auto at = pattern.find(placeholder);
    if (at == std::string::npos) continue;
    pattern.replace(at, placeholder.size(),
                    std::to_string(shared->layers[static_cast<std::size_t>(block)]));
  }
  return pattern;
}

}  // namespace

std::int64_t WeightPattern::tensors() const {
  if (joined > 1) return joined;
  return name.layout.experts == ExpertStorage::stacked ? 1 : experts;
}

std::int64_t WeightPattern::elements(std::span<const std::int64_t> shape) const {
  if (joined > 1) return matrix_shape(shape).rows * matrix_shape(shape).columns;
  return wanted.rows * wanted.columns * (experts / tensors());
}

bool WeightPattern::fits(std::span<const std::int64_t> shape) const {
  if (joined > 1) return fits_rows(shape, stored);
  return fits_shape(shape, stored, experts / tensors());
}

bool WeightPlace::fits(std::span<const std::int64_t> shape) const {
  if (joined > 1) return fits_rows(shape, stored);
  return fits_shape(shape, stored, expert ? experts : 1);
}

WeightPlace WeightPlace::sized_as(std::span<const std::int64_t> shape) const {
  WeightPlace sized = *this;
  sized.wanted = sized.stored = matrix_of_rows(shape);
  sized.range = {1, sized.stored.rows, 0, sized.stored.rows};
  return sized;
}

WeightPlaces::WeightPlaces(const ModelSpec& spec, const Graph& graph, NameTable table)
    : table_(std::move(table)), sizes_(graph.sizes) {
  Shapes first_shapes;
  for (const Weight& weight : graph.weights) {
    first_shapes.emplace(weight.path, shape_of(weight, sizes_));
  }
  std::set<Shapes> known;
  auto weight = graph.weights.begin();
  for (const Shapes& layer : shapes_by_layer(graph)) {
    const auto end = weight + std::ssize(layer);
    Shapes shapes = layer;
    shapes.insert(first_shapes.begin(), first_shapes.end());
    for (const bool is_new = known.insert(layer).second; weight != end; ++weight) {
      if (is_new) add_patterns(spec, shapes, *weight);
    }
  }
}

void WeightPlaces::add_patterns(const ModelSpec& spec, const Shapes& shapes, const Weight& weight) {
  std::vector<WeightPattern>& patterns = patterns_[{weight.path, shapes.at(weight.path)}];
  const bool is_of_layers = weight.repeat.evaluate(sizes_) > 1;
  for (const StoredName& name : stored_names(table_, weight.path)) {
    // One tensor cannot be the weights of several layers.
    if (is_of_layers && !names_layer(name.pattern)) continue;
    WeightPattern pattern = pattern_of(spec, shapes, weight.path, name);
    pattern.name.pattern = with_first_layers(spec, std::move(pattern.name.pattern));
    const auto same = [&](const WeightPattern& other) { return is_same_place(pattern, other); };
    if (std::ranges::none_of(patterns, same)) patterns.push_back(std::move(pattern));
  }
}

WeightPattern WeightPlaces::pattern_of(const ModelSpec& spec, const Shapes& shapes,
                                       const std::string& path, const StoredName& name) const {
  const std::vector<std::int64_t>& shape = shapes.at(path);
  WeightPattern pattern;
  pattern.name = name;
  pattern.joined = joined_tensors(name.pattern);
  pattern.wanted = wanted_shape(shape, name);
  if (is_per_expert(name)) pattern.experts = shape.front();
  pattern.range = range_of(spec, shapes, path, name);
  pattern.stored = stored_shape(name.layout, pattern.range, pattern.wanted);
  return pattern;
}

StackRange WeightPlaces::range_of(const ModelSpec& spec, const Shapes& shapes,
                                  const std::string& path, const StoredName& name) const {
  const auto size_of = [&](const std::string& part) -> std::int64_t {
    const auto shape = shapes.find(part);
    if (shape == shapes.end()) return 0;  // the model lacks this part
    return stacked_size(wanted_shape(shape->second, name), name.layout.axis);
  };
  const std::int64_t own = size_of(path);
  if (name.layout.stacking == Stacking::alone) return {1, own, 0, own};
  if (name.layout.stacking == Stacking::padded) return {1, padded_size(own), 0, own};
  // A weight without elements has no groups.
  const std::int64_t groups =
      std::max<std::int64_t>(1, groups_of(spec, path, name.layout.stacking, own));
  StackRange range{groups, 0, 0, own / groups};
  for (const std::string& part : stacked_paths(table_, path, name)) {
    const std::int64_t size = size_of(part);
    if (size % groups != 0) {
      throw Error(ErrorCode::internal,
                  fmt::format("{} groups do not divide the {} rows of {}", groups, size, part));
    }
    if (part == path) range.begin = range.group_size;
    if (size / groups > std::numeric_limits<std::int64_t>::max() - range.group_size) {
      throw Error(ErrorCode::invalid_input, "the weights stored as one tensor have too many rows");
    }
    range.group_size += size / groups;
  }
  return range;
}

std::span<const WeightPattern> WeightPlaces::patterns(const Weight& weight) const {
  const auto found = patterns_.find({weight.path, shape_of(weight, sizes_)});
  if (found != patterns_.end()) return found->second;
  throw Error(ErrorCode::internal, fmt::format("the model has no weight {}", weight.path));
}

std::vector<PlaceList> WeightPlaces::of(const Weight& weight, std::int64_t layer) const {
  std::vector<PlaceList> alternatives;
  for (const WeightPattern& pattern : patterns(weight)) {
    PlaceList& places = alternatives.emplace_back();
    const bool stacked = pattern.name.layout.experts == ExpertStorage::stacked;
    const std::int64_t tensors = pattern.joined > 1 ? pattern.joined : pattern.experts;
    for (std::int64_t expert = 0; expert < tensors; ++expert) {
      places.push_back({filled(pattern.name.pattern, layer, expert),
                        stacked ? std::optional(expert) : std::nullopt, pattern.name.layout,
                        pattern.range, pattern.wanted, pattern.stored, pattern.experts,
                        pattern.joined});
    }
  }
  return alternatives;
}

}  // namespace headroom::detail
