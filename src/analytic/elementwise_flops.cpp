// Element-wise FLOPs: the factors of op_cost.h times the elements.
#include "op_cost.h"

namespace headroom::detail {
namespace {

ElementwiseFlops each(const Expr& elements, ElementFlops flops) {
  return {flops.forward * elements, flops.backward * elements};
}

/// Scale, causal mask and bias of the scores: one operation each. Only the scale has a backward;
/// the bias's gradient is the scores' own.
ElementwiseFlops score_adjustments(const Expr& elements, AttentionScale scale, Masking masking,
                                   ScoreBias bias) {
  const Integer scaled = scale == AttentionScale::none ? 0 : 1;
  const Integer masked = masking == Masking::none ? 0 : 1;
  const Integer biased = bias == ScoreBias::none ? 0 : 1;
  return each(elements, {scaled + masked + biased, scaled});
}

struct ElementwiseVisitor {
  ElementwiseFlops operator()(const TokenEmbedding& op) const {
    Integer tables = 1;
    if (op.positions != AddedPositions::none) ++tables;
    if (!op.type_rows.is_zero()) ++tables;
    const Integer scaled = op.scale == EmbeddingScale::none ? 0 : 1;
    return each(op.tokens * op.width, {tables - 1 + scaled, tables + scaled});
  }
  ElementwiseFlops operator()(const PatchEmbedding& op) const {
    // A bias for each patch, a position for each token; the class token is one of the tokens.
    const Expr projected = op.batch * op.patches * op.width;
    const Expr tokens = op.batch * (op.patches + Integer{1}) * op.width;
    return {projected + tokens, projected + tokens};
  }
  ElementwiseFlops operator()(const RelativePositionBias& op) const {
    // The lookup's gradient adds every pair's into its bucket.
    return {{}, op.heads * op.queries * op.keys};
  }
  ElementwiseFlops operator()(const Linear& op) const {
    if (!op.bias) return {};
    return each(op.rows * op.out_features, {1, 1});
  }
  ElementwiseFlops operator()(const Norm& op) const {
    return each(op.rows * op.width, norm_flops(op));
  }
  ElementwiseFlops operator()(const Rotary& op) const { return each(op.elements, kRotaryFlops); }
  ElementwiseFlops operator()(const KvCacheAppend&) const { return {}; }
  ElementwiseFlops operator()(const AttentionScores& op) const {
    return score_adjustments(op.shape.score_elements(), op.scale, op.masking, op.bias);
  }
  ElementwiseFlops operator()(const Softmax& op) const { return each(op.elements, kSoftmaxFlops); }
  ElementwiseFlops operator()(const AttentionContext&) const { return {}; }
  ElementwiseFlops operator()(const FusedAttention& op) const {
    // Skips what the mask hides, so it needs no mask operation; the backward's recomputed
    // probabilities are counted again.
    const Expr pairs = op.shape.batch * op.shape.heads * op.pairs;
    const ElementwiseFlops scores = score_adjustments(pairs, op.scale, Masking::none, op.bias);
    const ElementwiseFlops softmax =
        each(pairs, {kSoftmaxFlops.forward, kSoftmaxFlops.forward + kSoftmaxFlops.backward});
    return {scores.forward + softmax.forward, scores.backward + softmax.backward};
  }
  ElementwiseFlops operator()(const FeatureMap& op) const {
    return each(op.elements, kFeatureMapFlops);
  }
  ElementwiseFlops operator()(const LinearAttention& op) const {
    // Σφ(K), eps on each denominator, and one division of the context.
    const Expr denominators = op.shape.batch * op.shape.queries * op.shape.heads;
    const Expr forward = op.shape.key_elements() + denominators + op.shape.context_elements();
    return {forward, Integer{2} * forward};
  }
  ElementwiseFlops operator()(const Activation& op) const {
    return each(op.elements, activation_flops(op.kind));
  }
  ElementwiseFlops operator()(const GatedActivation& op) const {
    const ElementFlops activation = activation_flops(op.kind);
    return each(op.elements, {activation.forward + 1, activation.backward + 2});
  }
  ElementwiseFlops operator()(const ResidualAdd& op) const { return each(op.elements, {1, 1}); }
  ElementwiseFlops operator()(const Dropout& op) const { return each(op.elements, kDropoutFlops); }
  ElementwiseFlops operator()(const SelectToken&) const { return {}; }
  ElementwiseFlops operator()(const Scale& op) const { return each(op.elements, {1, 1}); }
  ElementwiseFlops operator()(const CrossEntropy& op) const {
    return each(op.rows * op.classes, kCrossEntropyFlops);
  }
};

}  // namespace

ElementFlops activation_flops(ActivationKind kind) noexcept {
  switch (kind) {
    case ActivationKind::relu:
      return {1, 1};
    case ActivationKind::gelu:
      return {5, 11};
    case ActivationKind::gelu_tanh:
    case ActivationKind::gelu_new:
      return {9, 19};
    case ActivationKind::silu:
      return {4, 8};
    case ActivationKind::tanh:
      break;
  }
  return {1, 3};
}

ElementFlops norm_flops(const Norm& norm) noexcept {
  if (norm.kind == NormKind::rms_norm) return {4, 8};
  return norm.bias ? ElementFlops{7, 11} : ElementFlops{6, 10};
}

ElementwiseFlops elementwise_flops(const Op& op) { return std::visit(ElementwiseVisitor{}, op); }

}  // namespace headroom::detail
