// GraphBuilder: turns the choices of a ModelSpec into nodes. One file a concern: build_embedding,
// build_layers, build_attention, build_head. Internal to src/graph.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headroom/graph.h"

namespace headroom::detail {

/// One weight matrix [out_features, in_features] and its bias; several may share one Linear, side
/// by side on the output.
struct Projection {
  std::string name;
  Expr out_features;
};

/// A Linear before it has a place in the graph.
struct LinearParts {
  Part part = Part::head;
  std::string path;
  WeightRole role = WeightRole::head;
  Expr rows;
  Expr in_features;
  std::vector<Projection> projections;
  bool bias = false;
};

/// What tells the stacks of a model apart while their layers are built.
struct StackContext {
  const StackSpec* spec = nullptr;
  StackRole role = StackRole::single;
  std::string path;
  Expr num_layers;
  Expr tokens;                              ///< new tokens of a sequence: s, or n in an encoder
  KeySource keys = KeySource::projections;  ///< where self-attention reads its keys
};

/// The rows of the component table that an attention's operators belong to.
struct AttentionParts {
  std::string path;
  Part kv_cache;
  Part scores;
  Part softmax;
  Part context;
  Part core;
  Part out;
};

class GraphBuilder {
 public:
  GraphBuilder(const ModelSpec& spec, const GraphOptions& options);
  [[nodiscard]] Graph build() &&;

 private:
  // build_embedding.cpp
  TensorId input_hidden_states(const StackContext& stack);
  TensorId embed_tokens(const StackContext& stack);
  TensorId embed_patches(const StackContext& stack);
  TensorId finish_embedding(const StackContext& stack, TensorId hidden);
  WeightId word_embedding(const StackContext& stack);

  // build_layers.cpp
  TensorId run_stack(const StackContext& stack, TensorId hidden);
  TensorId layer(const StackContext& stack, TensorId hidden);
  TensorId final_norm(const StackContext& stack, TensorId hidden);
  TensorId feed_forward(const StackContext& stack, TensorId hidden);
  template <class Function>
  TensorId sublayer(const StackContext& stack, const std::string& name, double dropout_probability,
                    TensorId hidden, Function function);

  // build_attention.cpp
  void relative_position_bias(const StackContext& stack);
  TensorId self_attention(const StackContext& stack, TensorId hidden);
  TensorId cross_attention(const StackContext& stack, TensorId hidden);
  TensorId key_value_cache(const AttentionParts& parts, const AttentionSpec& attention,
                           const Expr& keys);
  TensorId softmax_attention(const StackContext& stack, const AttentionParts& parts,
                             const AttentionSpec& attention, const AttentionShape& shape,
                             KeySource keys, std::vector<TensorId> query_key_value);
  TensorId linear_attention(const StackContext& stack, TensorId query_key_value);
  TensorId attention_output(const StackContext& stack, const AttentionParts& parts,
                            const AttentionSpec& attention, TensorId context);

  // build_head.cpp
  void head(const StackContext& stack, TensorId hidden);
  TensorId select_token(Part part, TensorId hidden);
  TensorId pooler(TensorId hidden);
  TensorId language_model_transform(ActivationKind activation, const Expr& rows, TensorId hidden);
  void language_model_head(const StackContext& stack, TensorId hidden);
  void classifier(const StackContext& stack, TensorId hidden);
  void loss(const std::string& path, TensorId logits, const Expr& rows, const Expr& classes,
            SoftmaxPrecision precision);

  // builder.cpp
  void begin_block(const std::string& path, StackRole role, const Expr& repeat,
                   TensorId carried_in);
  TensorId end_block(TensorId carried_out);
  TensorId tensor(std::string name, std::vector<Expr> shape,
                  ElementType type = ElementType::activation);
  WeightId weight(Part part, const std::string& path, std::vector<Expr> shape, WeightRole role);
  /// A node with a new output tensor.
  TensorId emit(Part part, std::string path, Op op, std::vector<TensorId> inputs,
                std::vector<WeightId> weights, std::vector<Expr> output_shape);
  /// A node whose output takes the place of an input of the same size that is not needed any more.
  TensorId emit_in_place(Part part, std::string path, Op op, std::vector<TensorId> inputs,
                         std::vector<WeightId> weights = {});
  TensorId linear(const LinearParts& parts, TensorId input, std::vector<Expr> output_shape);
  TensorId norm(const NormSpec& spec, const std::string& path, const Expr& rows, TensorId input);
  TensorId dropout(const std::string& path, double probability, TensorId input,
                   Part part = Part::dropout);
  [[nodiscard]] std::vector<Expr> hidden_shape(const StackContext& stack) const;
  [[nodiscard]] bool training() const { return options_.phase == Phase::train; }

  const ModelSpec& spec_;
  GraphOptions options_;
  Graph graph_;
  StackRole role_ = StackRole::single;
  bool emit_nodes_ = true;  ///< false while only the weights of a skipped part are counted
  std::optional<WeightId> word_embedding_;
  std::optional<TensorId> position_bias_;
  std::optional<TensorId> encoder_output_;
};

}  // namespace headroom::detail
