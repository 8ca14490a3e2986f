#include "weights.h"

#include <fmt/format.h>

#include <set>

#include "headroom/error.h"

namespace headroom::measured {
namespace {

std::int64_t integer(const Expr& expr, const Bindings& sizes) {
  return static_cast<std::int64_t>(expr.evaluate(sizes));
}

template <class Map>
auto& at(const Map& map, const std::string& path, std::int64_t layer) {
  const auto found = map.find({path, layer});
  if (found == map.end()) {
    throw Error(ErrorCode::internal, fmt::format("the weight {} was not loaded", path));
  }
  return found->second;
}

}  // namespace

ModelWeights::ModelWeights(const ModelSpec& spec, WeightSource& source,
                           const WeightOptions& options)
    : graph_(build_graph(spec, {})) {
  // Tables, norms and whatever else is read as it is; a product's weights only live on packed.
  std::set<WeightId> read_as_is;
  for (const Block& block : graph_.blocks) {
    for (const Node& node : block.nodes) {
      if (std::holds_alternative<Linear>(node.op)) continue;
      read_as_is.insert(node.weights.begin(), node.weights.end());
    }
  }
  for (const Block& block : graph_.blocks) {
    const std::int64_t layers = integer(block.repeat, graph_.sizes);
    for (const Node& node : block.nodes) {
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        for (const WeightId id : node.weights) load(graph_.weights[id], layer, source);
        if (!std::holds_alternative<Linear>(node.op)) continue;
        pack(node, layer, options);
        for (const WeightId id : node.weights) {
          if (!read_as_is.contains(id)) values_.erase({graph_.weights[id].path, layer});
        }
      }
    }
  }
  source.finish();
}

std::vector<std::int64_t> ModelWeights::shape_of(const Weight& weight) const {
  std::vector<std::int64_t> shape;
  for (const Expr& size : weight.shape) shape.push_back(integer(size, graph_.sizes));
  return shape;
}

void ModelWeights::load(const Weight& weight, std::int64_t layer, WeightSource& source) {
  if (values_.contains({weight.path, layer})) return;  // a tied weight that is there already
  AlignedVector<float> values = source.load(weight, shape_of(weight), layer);
  bytes_ += static_cast<std::int64_t>(values.size() * sizeof(float));
  values_[{weight.path, layer}] = std::move(values);
}

void ModelWeights::pack(const Node& node, std::int64_t layer, const WeightOptions& options) {
  std::vector<LinearPart> parts;
  for (const WeightId id : node.weights) {
    const Weight& weight = graph_.weights[id];
    const AlignedVector<float>& values = at(values_, weight.path, layer);
    if (weight.path.ends_with(".bias")) {
      parts.back().bias = values;
    } else {
      parts.push_back({values, {}});
    }
  }
  if (options.storage == WeightStorage::bfloat16) {
    // Matrices are held in half the bytes; biases stay as they are.
    for (const LinearPart& part : parts)
      bytes_ -= static_cast<std::int64_t>(part.weight.size() * 2);
  }
  const auto& linear = std::get<Linear>(node.op);
  const std::string& path = graph_.weights[node.weights.front()].path;
  const LinearOptions packing{options.backend, Epilogue::none, options.rows, options.typical_rows,
                              options.storage};
  linears_[{path, layer}] =
      std::make_unique<PackedLinear>(parts, integer(linear.in_features, graph_.sizes), packing);
}

PackedLinear& ModelWeights::linear(const std::string& path, std::int64_t layer) const {
  return *at(linears_, path, layer);
}

const float* ModelWeights::values(const std::string& path, std::int64_t layer) const {
  return at(values_, path, layer).data();
}

}  // namespace headroom::measured
