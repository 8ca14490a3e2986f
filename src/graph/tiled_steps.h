// Steps of a tower that reads all tiles of an image at once, and of a decoder's layers that attend
// to images (tiled_tower.h). Internal to src/graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "builder.h"

namespace headroom::detail {

/// Emits into the blocks of `builder`.
struct GraphBuilder::TiledSteps {
  GraphBuilder& builder;

  /// Adds the branch of a sublayer, times the tanh of a trained number.
  TensorId add_gated(const StackContext& stack, const std::string& name, WeightRole role,
                     TensorId hidden, TensorId branch);
  TensorId trained_number(Part part, const std::string& path, WeightRole role);
  template <class Function>
  TensorId gated_sublayer(const StackContext& stack, const std::string& name, WeightRole role,
                          TensorId hidden, Function function);
  TensorId gated_network(const StackContext& stack, TensorId hidden);
  /// A layer of cross-attention to images, which a text without any skips.
  TensorId image_layer(const StackContext& stack, TensorId hidden);
  /// Adds rows of a table, `cycle` of an image, to `rows` rows of the tower, times a gate.
  TensorId add_rows(const std::string& name, std::vector<Expr> shape, Expr rows, Expr cycle,
                    TensorId gate, TensorId hidden);
  TensorId gate_of(const std::string& name);
  /// Copies the rows of all tiles, each completed with zeros to `rows` or cut to them.
  TensorId copy_rows(Part part, const std::string& path, std::int64_t rows, TensorId hidden);
  TensorId embed(const TowerSpec& tower);
  /// Copies the rows that the projector reads, before later layers overwrite them.
  TensorId features(const TowerSpec& tower, std::int64_t layers, TensorId hidden);
  TensorId gated_layers_of(const TowerSpec& tower, StackContext stack, TensorId hidden);
  TensorId run(const TowerSpec& tower, StackContext stack);
  TensorId joined(TensorId last, const std::vector<std::int64_t>& wanted,
                  const std::map<std::int64_t, TensorId>& states);
  /// Replaces the embeddings of placeholders by the first of their rows behind the vocabulary.
  TensorId insert_placeholders(TensorId hidden);
};

}  // namespace headroom::detail
