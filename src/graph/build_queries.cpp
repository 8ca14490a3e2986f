// Trained queries that attend to the rows of an image (QueryAttentionStep, QueryFormerStep).
#include <fmt/format.h>

#include "builder.h"

namespace headroom::detail {
namespace {

const Expr kQueriedImages = Symbol::images;

const StackSpec& without_dropout() {
  static const StackSpec kStack{};
  return kStack;
}

}  // namespace

/// Emits the operators of one step into the projector's block.
struct GraphBuilder::QuerySteps {
  GraphBuilder& builder;
  std::int64_t queries = 0;
  Expr width;     ///< of the queries
  Expr features;  ///< width of an image's rows
  Expr keys;      ///< rows of one image

  [[nodiscard]] Expr rows() const { return Integer{queries} * kQueriedImages; }
  [[nodiscard]] Expr key_rows() const { return keys * kQueriedImages; }

  TensorId trained_queries(std::int64_t stored) {
    const Expr count = Integer{queries};
    const WeightId own =
        builder.weight(Part::projector, "queries", {Integer{stored}, width}, WeightRole::projector);
    return builder.emit(Part::projector, "queries", RepeatedRow{kQueriedImages, count * width}, {},
                        {own}, {rows(), width});
  }

  [[nodiscard]] LinearParts parts(const std::string& path, std::vector<std::string> names,
                                  const Expr& in, const Expr& out) const {
    LinearParts linear{Part::projector, path, WeightRole::projector, rows(), in, {}, true};
    for (std::string& name : names) linear.projections.push_back({std::move(name), out});
    return linear;
  }

  /// A linear layer over the queries.
  TensorId linear(const std::string& path, const Expr& in, const Expr& out, TensorId input) {
    return builder.linear(parts(path, {path}, in, out), input, {rows(), out});
  }

  TensorId norm(const NormSpec& spec, const std::string& path, TensorId input) {
    const std::vector<Expr> shape = builder.graph_.tensors[input].shape;
    return builder.norm(spec, path, Norm{spec, shape[0], shape[1], {}}, input);
  }

  /// The context of all heads, side by side.
  TensorId attend(const AttentionSpec& attention, const AttentionParts& attention_parts,
                  std::vector<TensorId> tensors, const Expr& attended) {
    const HeadSizes heads = builder.head_sizes(attention);
    StackContext stack;
    stack.spec = &without_dropout();
    stack.tokens = rows();
    AttentionOperands operands;
    operands.shape = heads.shape(Integer{queries}, attended);
    operands.shape.batch = kQueriedImages;
    operands.pairs = operands.shape.pairs();
    operands.tensors = std::move(tensors);
    const TensorId context = builder.softmax_attention(stack, attention_parts, attention, operands);
    builder.graph_.tensors[context].shape = {rows(), heads.context_width()};
    return context;
  }

  /// Two projections of the image's rows or of `input`, one after the other. Source:
  /// AriaCrossAttention, transformers, models/aria.
  TensorId projected_twice(const std::string& name, const Expr& of_rows, TensorId input) {
    LinearParts outer = parts("outer_" + name, {"outer_" + name}, width, width);
    outer.rows = of_rows;
    outer.bias = false;
    LinearParts inner = parts(name, {name}, width, width);
    inner.rows = of_rows;
    const TensorId first = builder.linear(outer, input, {of_rows, width});
    return builder.linear(inner, first, {of_rows, width});
  }

  TensorId attend_once(const QueryAttentionStep& step, TensorId image_rows) {
    const TensorId normed = norm(step.norm, "key_value_norm", image_rows);
    const TensorId query = norm(step.norm, "query_norm", trained_queries(step.stored_queries));
    const TensorId key_value = builder.emit(
        Part::projector, "key_value", Concatenate{key_rows(), width, width},
        {projected_twice("key", key_rows(), normed), projected_twice("value", key_rows(), normed)},
        {}, {key_rows(), Integer{2} * width});
    const TensorId context = attend(step.attention, cross_attention_parts(),
                                    {projected_twice("query", rows(), query), key_value}, keys);
    return linear("linear", width, width, linear("output", width, width, context));
  }

  /// norm(x + linear(context)), as BERT's layers add what they compute.
  TensorId add(const QueryFormerStep& step, const std::string& path, const Expr& in,
               TensorId hidden, TensorId branch) {
    const TensorId output = linear(path + ".output", in, width, branch);
    const TensorId sum = builder.emit_in_place(Part::projector, path + ".residual",
                                               ResidualAdd{rows() * width}, {hidden, output});
    return norm(step.norm, path + ".norm", sum);
  }

  TensorId attend_to_queries(const QueryFormerStep& step, std::int64_t layer, TensorId hidden) {
    AttentionParts own = self_attention_parts();
    own.path = fmt::format("attention.{}", layer);
    const LinearParts projection =
        parts(own.path + ".qkv", {own.path + ".query", own.path + ".key", own.path + ".value"},
              width, width);
    const TensorId qkv = builder.linear(projection, hidden, {rows(), Integer{3} * width});
    return add(step, own.path, width, hidden, attend(step.attention, own, {qkv}, Integer{queries}));
  }

  TensorId attend_to_image(const QueryFormerStep& step, std::int64_t layer, TensorId hidden,
                           TensorId image_rows) {
    AttentionParts cross = cross_attention_parts();
    cross.path = fmt::format("cross_attention.{}", layer);
    LinearParts projection = parts(cross.path + ".key_value",
                                   {cross.path + ".key", cross.path + ".value"}, features, width);
    projection.rows = key_rows();
    const TensorId query = linear(cross.path + ".query", width, width, hidden);
    const TensorId key_value =
        builder.linear(projection, image_rows, {key_rows(), Integer{2} * width});
    return add(step, cross.path, width, hidden,
               attend(step.attention, cross, {query, key_value}, keys));
  }

  TensorId network(const QueryFormerStep& step, std::int64_t layer, TensorId hidden) {
    const std::string path = fmt::format("mlp.{}", layer);
    const Expr inner = Integer{step.ffn.intermediate_size};
    const TensorId up = linear(path + ".up", width, inner, hidden);
    const TensorId active =
        builder.emit_in_place(Part::projector, path + ".activation",
                              Activation{step.ffn.activation, rows() * inner}, {up});
    return add(step, path, inner, hidden, active);
  }

  TensorId run_former(const QueryFormerStep& step, TensorId image_rows) {
    TensorId hidden = norm(step.norm, "query_norm", trained_queries(step.queries));
    for (std::int64_t layer = 0; layer < step.layers; ++layer) {
      hidden = attend_to_queries(step, layer, hidden);
      const bool crosses = layer % step.cross_frequency == 0;
      if (crosses) hidden = attend_to_image(step, layer, hidden, image_rows);
      hidden = network(step, layer, hidden);
    }
    return hidden;
  }
};

TensorId GraphBuilder::project_queries(const ProjectorStep& step, TensorId features) {
  const TowerSpec& tower = *spec_.tower;
  const ImageSpec& image = *tower.embedding.image;
  const bool all = tower.projector.rows == FeatureRows::all;
  const Expr width = graph_.tensors[features].shape[1];
  QuerySteps steps{*this, tower.projector.queries(), width, width,
                   Integer{all ? image.num_tokens() : image.num_patches()}};
  if (const auto* const once = std::get_if<QueryAttentionStep>(&step)) {
    return steps.attend_once(*once, features);
  }
  const auto& former = std::get<QueryFormerStep>(step);
  steps.width = Integer{former.width};
  return steps.run_former(former, features);
}

}  // namespace headroom::detail
