// Texts and images as one vector each, and the products of both (SimilarityHeadSpec).
#include "builder.h"
#include "visit.h"

namespace headroom::detail {
namespace {

const Expr kImages = Symbol::images;

}  // namespace

TensorId GraphBuilder::pool_images(const StackContext& stack, const ImagePooling& pooling,
                                   TensorId hidden) {
  return std::visit(
      Overloaded{
          [&](const ClassTokenPooling& own) { return pool_class_tokens(stack, own, hidden); },
          [&](const ProbePooling& own) { return pool_by_probe(stack, own, hidden); }},
      pooling);
}

TensorId GraphBuilder::pool_class_tokens(const StackContext& stack,
                                         const ClassTokenPooling& pooling, TensorId hidden) {
  begin_block(stack.path, stack.role, Integer{1}, hidden);
  const PatchRows op{PatchRows::Kind::class_token, kImages, kHidden};
  const TensorId tokens =
      emit(Part::vision_tower, "class_token", op, {hidden}, {}, {kImages, kHidden});
  return end_block(norm(pooling.norm, "final_norm", kImages, tokens));
}

/// Source: SiglipMultiheadAttentionPoolingHead, transformers, models/siglip. It has no dropout.
TensorId GraphBuilder::pool_by_probe(StackContext stack, const ProbePooling& pooling,
                                     TensorId hidden) {
  StackSpec without_dropout = *stack.spec;
  without_dropout.dropout = {};
  stack.spec = &without_dropout;
  stack.tokens = kImages;
  stack.heads = head_sizes(pooling.attention);
  begin_block("head", stack.role, Integer{1}, hidden);
  const WeightId probe = weight(Part::vision_tower, "probe", {kHidden}, WeightRole::head);
  const TensorId probes = emit(Part::vision_tower, "probe", RepeatedRow{stack.rows(), kHidden}, {},
                               {probe}, hidden_shape(stack));
  const TensorId attended = probe_attention(stack, pooling.attention, probes, hidden);
  const TensorId normed = norm(pooling.norm, "norm", stack.rows(), attended);
  const Expr width = sized(Symbol::intermediate_size, pooling.ffn.intermediate_size);
  const TensorId network = dense_network(stack, pooling.ffn, width, "mlp", std::nullopt, normed);
  const TensorId sum = add_residual(stack, "mlp.residual", attended, network);
  graph_.tensors[sum].shape = {kBatch * kImages, kHidden};
  return end_block(sum);
}

TensorId GraphBuilder::probe_attention(const StackContext& stack, const AttentionSpec& attention,
                                       TensorId probes, TensorId hidden) {
  const HeadSizes& heads = stack.heads;
  const AttentionParts parts = cross_attention_parts();
  const Expr rows = kBatch * Symbol::seq_len;  // of all images
  const Expr width = heads.key_width() + heads.value_width();
  const LinearParts query{Part::cross_attention_query,
                          "cross_attention.query",
                          WeightRole::attention,
                          stack.rows(),
                          kHidden,
                          {{"cross_attention.query", heads.query_width()}},
                          attention.qkv_bias};
  const LinearParts key_value{
      Part::cross_attention_key_value,
      "cross_attention.key_value",
      WeightRole::attention,
      rows,
      kHidden,
      {{"cross_attention.key", heads.key_width()}, {"cross_attention.value", heads.value_width()}},
      attention.qkv_bias};
  AttentionOperands operands;
  if (spec_.embedding.image->interpolation == PositionInterpolation::none) {
    operands.shape = heads.shape(Integer{1}, Integer{spec_.embedding.image->num_tokens()});
    operands.shape.batch = kBatch * kImages;
  } else {  // images of their own lengths
    operands.shape = heads.shape(kImages, Symbol::seq_len);
    operands.shape.image_pairs = Symbol::seq_len;
    operands.shape.scope = ImageScope::probe;
  }
  operands.pairs = operands.shape.pairs();
  operands.tensors = {linear(query, probes, {kBatch, kImages, heads.query_width()}),
                      linear(key_value, hidden, {kBatch, Symbol::seq_len, width})};
  const TensorId context = softmax_attention(stack, parts, attention, operands);
  return attention_output(stack, parts, attention, heads.context_width(), context);
}

void GraphBuilder::similarity_head(const SimilarityHeadSpec& spec, TensorId hidden) {
  const Expr width = Integer{spec.projection_dim};
  const SelectToken op{kBatch * kHidden, spec.pooling, {}, spec.token_id};
  const TensorId pooled = emit(Part::head, "text_pooling", op, {hidden}, {}, {kBatch, kHidden});
  const LinearParts projection{Part::head,
                               "text_projection",
                               WeightRole::head,
                               kBatch,
                               kHidden,
                               {{"text_projection", width}},
                               spec.projection_bias};
  const TensorId text = emit_in_place(Part::head, "text_embeds", UnitLength{kBatch, width},
                                      {linear(projection, pooled, {kBatch, width})});
  graph_.outputs.push_back(text);
  std::vector<WeightId> weights{weight(Part::head, "logit_scale", {Integer{1}}, WeightRole::head)};
  if (spec.logit_bias) {
    weights.push_back(weight(Part::head, "logit_bias", {Integer{1}}, WeightRole::head));
  }
  if (!reads_images()) return;
  graph_.outputs.push_back(emit(Part::head, "logits_per_text",
                                SimilarityLogits{kBatch, kImages, width, spec.logit_bias},
                                {text, *image_vectors_}, std::move(weights), {kBatch, kImages}));
}

}  // namespace headroom::detail
