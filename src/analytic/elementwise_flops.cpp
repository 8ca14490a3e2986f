// Element-wise FLOPs: the factors of op_cost.h times the elements.
#include <limits>

#include "op_cost.h"

namespace headroom::detail {
namespace {

ElementwiseFlops each(const Expr& elements, ElementFlops flops) {
  return {flops.forward * elements, flops.backward * elements};
}

/// A mask is either added to the scores of all pairs or skips masked pairs.
enum class MaskCost { added, skipped };

/// Scale, mask, bias and soft cap of the scores. Scale and cap cost FLOPs in the backward pass; the
/// bias's gradient is that of the scores.
ElementwiseFlops score_adjustments(const Expr& elements, const ScoreShaping& shaping,
                                   MaskCost mask) {
  const Integer scaled = shaping.scale == AttentionScale::none ? 0 : 1;
  const Integer masked = mask == MaskCost::added ? 1 : 0;
  const Integer biased = shaping.bias == ScoreBias::none ? 0 : 1;
  const ElementFlops cap = shaping.soft_cap > 0 ? kSoftCapFlops : ElementFlops{0, 0};
  return each(elements, {scaled + masked + biased + cap.forward, scaled + cap.backward});
}

/// FLOPs of a router on its scores. Top-k is comparisons, not FLOPs.
ElementwiseFlops router_flops(const RouterSelect& op) {
  const Expr scores = op.rows * op.num_experts;
  const Expr chosen = op.rows * op.per_token;
  Expr forward;
  Expr backward;
  switch (op.spec.scoring) {
    case RouterScoring::softmax:
      forward = kSoftmaxFlops.forward * scores;
      backward = kSoftmaxFlops.backward * scores;
      break;
    case RouterScoring::sigmoid: {
      const ElementFlops sigmoid = activation_flops(ActivationKind::sigmoid);
      forward = sigmoid.forward * scores;
      backward = sigmoid.backward * scores;
      break;
    }
    case RouterScoring::sigmoid_of_chosen: {
      const ElementFlops sigmoid = activation_flops(ActivationKind::sigmoid);
      forward = sigmoid.forward * chosen;
      backward = sigmoid.backward * chosen;
      break;
    }
    case RouterScoring::sqrt_softplus:
      forward = kSqrtSoftplusFlops.forward * scores;
      backward = kSqrtSoftplusFlops.backward * scores;
      break;
    case RouterScoring::softmax_of_chosen:
      forward = kSoftmaxFlops.forward * chosen;
      backward = kSoftmaxFlops.backward * chosen;
      break;
    case RouterScoring::sparse_mixer:
      // One softmax over all experts per selected expert.
      forward = kSoftmaxFlops.forward * scores * op.per_token;
      backward = kSoftmaxFlops.backward * scores * op.per_token;
      break;
  }
  const Integer normalised = op.spec.normalise ? 2 : 0;
  const Integer trained = op.spec.beside_dense ? 1 : 0;
  const Integer scaled = trained + (op.spec.scaling_factor == 1 ? 0 : 1);
  const Integer corrected = op.spec.correction_bias ? 1 : 0;
  return {forward + corrected * scores + (normalised + scaled) * chosen,
          backward + (normalised + scaled) * chosen};
}

/// A scan besides its GEMMs: the decay of the state, Δ·x and D·x for each channel, and the rates.
/// Softplus is 3 FLOPs (exp, add, log), the clamp of Δ 2. A decay is exp(Δ·A), 2 FLOPs, once per
/// head (dual) or for every state (selective); a dual layer adds a bias to Δ, a selective one has
/// added it in its projection. A lightning layer only decays.
ElementwiseFlops scan_flops(const StateSpaceScan& op) {
  if (op.kind == StateSpaceKind::lightning) return each(op.scanned_elements(), {1, 2});
  const Expr heads = op.rows * op.heads;
  const bool clamps =
      op.least_time_step > 0 || op.greatest_time_step < std::numeric_limits<double>::infinity();
  Expr forward = op.scanned_elements() + Integer{3} * op.output_elements();
  forward += Integer{clamps ? 5 : 3} * heads;
  switch (op.kind) {
    case StateSpaceKind::dual:
      forward += Integer{3} * heads;
      break;
    case StateSpaceKind::selective:
      forward += Integer{2} * op.scanned_elements();
      break;
    case StateSpaceKind::lightning:
      break;
  }
  return {forward, Integer{2} * forward};
}

/// Time mixing besides its GEMMs. `addition`: the decay of the state, the bonus of a token's own
/// key. `two_vectors`, of each key: the decay (sigmoid, factor, exp), the rate's sigmoid, the key
/// that it replaces (4), the removal's vector (1), its length (4) and its rate (1).
ElementwiseFlops time_mix_flops(const GatedDelta& op) {
  const Integer sigmoid = activation_flops(ActivationKind::sigmoid).forward;
  const Integer key = op.update == StateUpdate::addition ? 1 : (sigmoid + 2) + sigmoid + 10;
  const Expr keys = op.rows * op.heads * op.key_dim;
  return each(keys * op.value_dim + key * keys, {1, 2});
}

/// Pre and post weights: scale, bias, sigmoid, and a sum or a factor, or both. The matrix: scale,
/// bias, softmax, a sum; then normalisations of rows and columns in turn, each a sum, an addition
/// of epsilon per row and a division, of which the softmax was the first.
Expr stream_weight_flops(const StreamWeights& op) {
  const Expr vector = op.rows * op.streams;
  const Expr matrix = vector * op.streams;
  const Integer per_weight = activation_flops(ActivationKind::sigmoid).forward + 3;
  switch (op.site) {
    case StreamWeights::Site::last_sum:
      return per_weight * vector;
    case StreamWeights::Site::sublayer:
      break;
  }
  const Integer of_eps = op.spec.addition_eps != 0 ? 1 : 0;
  Expr vectors = (2 * per_weight + of_eps) * vector;
  if (!op.mixes()) return vectors;
  const Integer rounds = 2 * Integer{op.spec.sinkhorn_iterations} - 1;
  return vectors + (kSoftmaxFlops.forward + 3) * matrix + rounds * (Integer{2} * matrix + vector);
}

/// Alternating updates. A root mean square is a square and a sum per element; scaling to that of
/// another stream, a multiplication and a division.
ElementwiseFlops altup_flops(const AltUpStep& op) {
  const Expr one = op.stream_elements();
  const Expr others = op.elements() - one;
  const Expr matched = Integer{2} * one + Integer{4} * others;
  Expr forward;
  switch (op.kind) {
    case AltUpStep::Kind::stack:
      forward = matched;
      break;
    case AltUpStep::Kind::merge:
      forward = matched + op.elements();
      break;
    case AltUpStep::Kind::select:
      break;
    case AltUpStep::Kind::predict:
      return {op.elements(), op.elements()};
    case AltUpStep::Kind::correct:
      forward = one + Integer{2} * op.elements() + op.streams * op.rows;
      break;
    case AltUpStep::Kind::spread:
      return {others, others};
  }
  return {forward, Integer{2} * forward};
}

/// Scores of attention residuals and their softmax: a norm without its weight, and a product with a
/// vector, which is first multiplied by that weight | the gradients of both factors of the product
/// and of the norm, and their sum with that of the weighted sum.
ElementwiseFlops attend_flops(const StreamStep& op) {
  const ElementFlops norm = norm_flops({NormKind::rms_norm, false, op.eps, NormWeight::none});
  const Expr scores = op.rows * op.streams;
  const Expr forward = (norm.forward + 2) * op.elements() + op.width;
  const Expr backward = (norm.backward + 4) * op.elements() + Integer{2} * op.width;
  return {forward + kSoftmaxFlops.forward * scores, backward + kSoftmaxFlops.backward * scores};
}

/// x·(1 + scale) + shift and x·gate. Backward: the gradients of x, one product each, and those of
/// the vectors, sums over the tokens of the gradient and of its products with x.
ElementwiseFlops modulation_flops(const Modulation& op) {
  switch (op.kind) {
    case Modulation::Kind::scale_and_shift:
      return {Integer{2} * op.elements() + op.batch * op.width, Integer{4} * op.elements()};
    case Modulation::Kind::gate:
      break;
  }
  return {op.elements(), Integer{3} * op.elements()};
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
    // One bias per patch and one position per token, the class token included.
    const Expr projected = op.bias ? op.patches * op.width : Expr();
    const Expr tokens = op.positions ? op.tokens() * op.width : Expr();
    return {projected + tokens, projected + tokens};
  }
  ElementwiseFlops operator()(const PatchRows& op) const {
    if (!op.averages()) return {};
    return each(op.elements(), {1, 1});
  }
  ElementwiseFlops operator()(const VisualTokens& op) const {
    return op.kind == VisualTokens::Kind::add ? each(op.elements(), {1, 0}) : ElementwiseFlops{};
  }
  ElementwiseFlops operator()(const RelativePositionBias& op) const {
    // The gradient of the lookup sums all pairs into their buckets.
    return {{}, op.elements()};
  }
  ElementwiseFlops operator()(const PositionTableRows&) const { return {}; }
  ElementwiseFlops operator()(const DisentangledBias& op) const {
    // Biases of the projections; the sum of the terms and its scale.
    const bool plain_key = op.spec.content_to_position && !op.spec.key_bias;
    const Expr biased = op.projections() - Integer{plain_key ? 1 : 0};
    const Expr biases = biased * op.positions * op.shape.heads * op.shape.head_dim;
    const Expr pairs = op.terms() * op.shape.score_elements();
    return {biases + pairs, biases + pairs};
  }
  ElementwiseFlops operator()(const RelativeSinusoids& op) const {
    return {op.elements(), {}};  // the angles
  }
  ElementwiseFlops operator()(const TransformerXlBias& op) const {
    // Adds a vector to the queries for each of three terms; sums and scales them.
    const Expr sums = Integer{3} * op.shape.query_elements();
    const Expr pairs = Integer{3} * op.shape.score_elements();
    return {sums + pairs, sums + pairs};
  }
  ElementwiseFlops operator()(const LocalAttention& op) const {
    // Scales queries and keys, adds the scores of positions, caps them (a division, tanh and a
    // product) and masks them.
    const ElementwiseFlops softmax = each(op.score_elements(), kSoftmaxFlops);
    const Expr scores = Integer{op.soft_cap > 0 ? 5 : 2} * op.score_elements();
    const Expr scales = Integer{2} * op.query_elements();
    return {scales + scores + softmax.forward, scales + scores + softmax.backward};
  }
  ElementwiseFlops operator()(const GatedPositionBias& op) const {
    // Of a gate: biases and sums of the linear layer's values, two sigmoids (1 FLOP each), and
    // a·(b·scale - 1) + 2. The gradient of a product is two.
    constexpr std::int64_t kOfGate = 2 * GatedPositionBias::kValues - 2 + 2 + 4;
    const Expr gates = Integer{kOfGate} * op.gated_rows();
    const Expr pairs = op.shape.score_elements();
    return {gates + pairs, Integer{2} * (gates + pairs)};
  }
  ElementwiseFlops operator()(const Linear& op) const {
    if (!op.bias) return {};
    return each(op.rows * op.out_features, {1, 1});
  }
  ElementwiseFlops operator()(const PositionEmbedding& op) const {
    return each(op.tokens * op.width, {1, 1});
  }
  ElementwiseFlops operator()(const Convolution& op) const {
    if (!op.bias) return {};
    return each(op.batch * op.length * op.out_channels, {1, 1});
  }
  ElementwiseFlops operator()(const GridConvolution& op) const {
    if (!op.bias) return {};
    return each(op.batch * Integer{op.places()} * Integer{op.out_channels}, {1, 1});
  }
  ElementwiseFlops operator()(const Norm& op) const {
    return each(op.rows * op.width, norm_flops(op.spec));
  }
  ElementwiseFlops operator()(const HeadNorm& op) const {
    return each(op.heads.elements(), norm_flops(op.spec));
  }
  ElementwiseFlops operator()(const Rotary& op) const { return each(op.elements(), kRotaryFlops); }
  ElementwiseFlops operator()(const Clamp& op) const { return each(op.elements, {2, 1}); }
  ElementwiseFlops operator()(const TemperatureScale& op) const {
    const bool trained = op.tuning.from == TemperatureTuning::From::of_heads;
    // Backward: the gradients of the queries, of the factors as products summed over a head, and of
    // scale and bias as sums over tokens.
    const ElementwiseFlops factors =
        each(op.heads.rows * op.heads.heads, trained ? ElementFlops{2, 3} : ElementFlops{});
    const ElementwiseFlops products =
        each(op.heads.elements(), trained ? ElementFlops{1, 3} : ElementFlops{1, 1});
    return {factors.forward + products.forward, factors.backward + products.backward};
  }
  ElementwiseFlops operator()(const LatentConcat& op) const {
    return {{},
            op.rows * op.heads *
                op.rope_dim};  // sums the gradients of the shared rotary key over heads
  }
  ElementwiseFlops operator()(const HeadLinear&) const { return {}; }
  ElementwiseFlops operator()(const GroupedLinear&) const { return {}; }
  ElementwiseFlops operator()(const KeyCompression& op) const {
    // Adds the bias, softmax, weighted sum.
    return each(op.summed(), {kSoftmaxFlops.forward + 3, kSoftmaxFlops.backward + 3});
  }
  ElementwiseFlops operator()(const IndexScores& op) const {
    // Scale and ReLU of every head's scores.
    return each(op.pairs() * op.heads * op.weights(), {2, 2});
  }
  ElementwiseFlops operator()(const KeySelect&) const { return {}; }   // comparisons
  ElementwiseFlops operator()(const PoolTokens&) const { return {}; }  // copies
  ElementwiseFlops operator()(const StreamWeights& op) const {
    const Expr forward = stream_weight_flops(op);
    return {forward, Integer{2} * forward};
  }
  ElementwiseFlops operator()(const StreamStep& op) const {
    switch (op.kind) {
      case StreamStep::Kind::expand:
        return {{}, op.elements()};  // sums the gradients of the copies
      case StreamStep::Kind::sum:
        return each(op.elements(), {2, 3});
      case StreamStep::Kind::mean:  // a sum, and a product per row
        return {op.elements(), op.rows * op.width};
      case StreamStep::Kind::attend:
        return attend_flops(op);
      case StreamStep::Kind::update:
      case StreamStep::Kind::add:
        break;
    }
    return each(op.elements(), {2, 3});  // the output times its weight, and a sum
  }
  ElementwiseFlops operator()(const KvCacheAppend&) const { return {}; }
  ElementwiseFlops operator()(const AttentionScores& op) const {
    const bool masked = op.masking == Masking::causal || op.shaping.window.kind != WindowKind::none;
    return score_adjustments(op.shape.score_elements(), op.shaping,
                             masked ? MaskCost::added : MaskCost::skipped);
  }
  ElementwiseFlops operator()(const Softmax& op) const { return each(op.elements, kSoftmaxFlops); }
  ElementwiseFlops operator()(const AttentionContext&) const { return {}; }
  ElementwiseFlops operator()(const FusedAttention& op) const {
    // Skips masked pairs, so it adds no mask. The backward pass recomputes the probabilities.
    const Expr pairs = op.shape.batch * op.shape.heads * op.pairs;
    const ElementwiseFlops scores = score_adjustments(pairs, op.shaping, MaskCost::skipped);
    const ElementwiseFlops softmax =
        each(pairs, {kSoftmaxFlops.forward, kSoftmaxFlops.forward + kSoftmaxFlops.backward});
    return {scores.forward + softmax.forward, scores.backward + softmax.backward};
  }
  ElementwiseFlops operator()(const GlobalRows& op) const {
    return op.kind == GlobalRows::Kind::sum ? each(op.added(), {1, 0}) : ElementwiseFlops{};
  }
  ElementwiseFlops operator()(const FeatureMap& op) const {
    return each(op.heads.elements(), feature_map_flops(op.kind));
  }
  ElementwiseFlops operator()(const LinearAttention& op) const {
    // Σφ(K), eps on each denominator, and one division per context element.
    const Expr denominators = op.shape.batch * op.shape.queries * op.shape.heads;
    const Expr forward = op.shape.key_elements() + denominators + op.shape.context_elements();
    return {forward, Integer{2} * forward};
  }
  ElementwiseFlops operator()(const ShortConvolution& op) const {
    const ElementFlops activation = activation_flops(op.activation);
    const Integer bias = op.bias ? 1 : 0;
    return each(op.elements(), {activation.forward + bias, activation.backward + bias});
  }
  ElementwiseFlops operator()(const StateSpaceScan& op) const { return scan_flops(op); }
  ElementwiseFlops operator()(const GatedDelta& op) const {
    if (op.update != StateUpdate::delta) return time_mix_flops(op);
    // Decay of the state; the strengths (sigmoid), the decays (exp, log, two multiplications, exp)
    // and, per head, the norms of query and key.
    const Integer strength = activation_flops(ActivationKind::sigmoid).forward;
    const Integer scaled = op.strength == 1 ? 0 : 1;
    const Expr state = op.rows * op.heads * op.key_dim * op.value_dim;
    const Expr rates = op.rows * ((strength + scaled) * op.heads + Integer{5} * op.decays());
    const Expr norms = Integer{2} * Integer{4} * op.rows * op.heads * op.key_dim;
    const Expr forward = state + rates + norms;
    return {forward, Integer{2} * forward};
  }
  ElementwiseFlops operator()(const GatedLinearRecurrence& op) const {
    // Biases and sigmoids of both gates; a (multiplication, exp) and a² (likewise); i·x; 1 - a²,
    // its root and their product; a·h and the sum.
    const Integer gates = 2 + 2 * activation_flops(ActivationKind::sigmoid).forward;
    return each(op.elements(), {gates + 10, 2 * (gates + 10)});
  }
  ElementwiseFlops operator()(const TokenShift&) const { return {}; }
  ElementwiseFlops operator()(const TokenMix& op) const {
    // Backward: of both inputs, and a difference, a multiplication and a sum for the weight.
    const ElementFlops gate =
        op.weight == MixWeight::gate ? activation_flops(ActivationKind::sigmoid) : ElementFlops{};
    return each(op.rows * op.width, {3 + gate.forward, 5 + gate.backward});
  }
  ElementwiseFlops operator()(const ValueBonus& op) const {
    // The rate's sigmoid and the key that it replaces (4); r·k̃·u and its sum; then (Σ)·v, added.
    const Integer key = activation_flops(ActivationKind::sigmoid).forward + 4 + 3;
    return each(op.key_elements() * key + Integer{2} * op.value_elements(), {1, 2});
  }
  ElementwiseFlops operator()(const WeightedKeyValue& op) const {
    // Of the output and of the next state: sums with u or w, a maximum, two differences and
    // exponentials, the numerator (3) and the denominator (2); then a division.
    return each(op.elements(), {2 * (1 + 1 + 2 + 2 + 3 + 2) + 1, 4 * 11 + 2});
  }
  ElementwiseFlops operator()(const Concatenate&) const { return {}; }
  ElementwiseFlops operator()(const Recurrence& op) const {
    const ElementFlops cell = cell_flops(op.cell);
    const Integer biases = op.bias ? gates_of(op.cell) : 0;
    return each(op.output_elements(), {cell.forward + biases, cell.backward + biases});
  }
  ElementwiseFlops operator()(const OutputGate& op) const {
    const ElementFlops gate = activation_flops(op.kind);
    // Backward: the products with both factors, and sums over the values of a shared gate.
    const Expr products = Integer{op.is_shared() ? 3 : 2} * op.elements;
    return {op.elements + Integer{gate.forward} * op.gate_elements(),
            products + Integer{gate.backward} * op.gate_elements()};
  }
  ElementwiseFlops operator()(const Activation& op) const {
    return each(op.elements, activation_flops(op.kind));
  }
  ElementwiseFlops operator()(const GatedActivation& op) const {
    // A cutoff: the mean (1), the deviation (3), a subtraction and a ReLU.
    const Integer cutoff = op.cutoff ? 6 : 0;
    // A limit: min; min, max | the clamps again and two selects.
    const ElementFlops limit = op.limit > 0 ? ElementFlops{3, 5} : ElementFlops{0, 0};
    const ElementFlops activation = activation_flops(op.kind);
    const Integer caps = !op.caps ? 0 : op.caps->up > 0 ? 2 : 1;
    return each(
        op.elements,
        {activation.forward + cutoff + limit.forward + caps * kSoftCapFlops.forward + 1,
         activation.backward + cutoff + limit.backward + caps * kSoftCapFlops.backward + 2});
  }
  ElementwiseFlops operator()(const RouterSelect& op) const { return router_flops(op); }
  ElementwiseFlops operator()(const ExpertLinear& op) const {
    const bool weighted_here =
        op.source == ExpertLinear::Source::tokens && op.weighting == ExpertWeighting::input;
    const Expr rows = op.rows * op.per_token;
    const Expr biased = op.bias ? rows * op.out_features : Expr();
    const Expr weighted = weighted_here ? rows * op.in_features : Expr();
    return {biased + weighted, biased + Integer{2} * weighted};
  }
  ElementwiseFlops operator()(const ExpertCombine& op) const {
    const bool weighted = op.weighting == ExpertWeighting::output;
    const Expr elements = op.rows * op.per_token * op.width;
    return each(elements, weighted ? ElementFlops{2, 3} : ElementFlops{1, 1});
  }
  ElementwiseFlops operator()(const RowGate& op) const {
    const ElementFlops sigmoid = activation_flops(ActivationKind::sigmoid);
    const Expr elements = op.rows * op.width;
    return {elements + sigmoid.forward * op.rows,
            Integer{3} * elements + sigmoid.backward * op.rows};
  }
  ElementwiseFlops operator()(const ResidualAdd& op) const {
    return each(op.elements, op.multiplier == 1 ? ElementFlops{1, 1} : ElementFlops{2, 2});
  }
  ElementwiseFlops operator()(const Dropout& op) const { return each(op.elements, kDropoutFlops); }
  ElementwiseFlops operator()(const ChannelScale& op) const {
    switch (op.statistics) {
      case ChannelScale::Statistics::none:
        break;
      case ChannelScale::Statistics::mean_and_factor:
        return each(op.rows * op.width, {2, 1});
      case ChannelScale::Statistics::batch_norm:
        return each(op.rows * op.width, {4, 8});
    }
    return each(op.rows * op.width, {1, 2});
  }
  ElementwiseFlops operator()(const SelectToken& op) const { return each(op.averaged, {1, 1}); }
  ElementwiseFlops operator()(const UnitLength& op) const {
    return each(op.rows * op.width, kUnitLengthFlops);
  }
  ElementwiseFlops operator()(const RepeatedRow& op) const {
    return each(op.rows * op.width, {0, 1});  // sums the gradients of its copies
  }
  ElementwiseFlops operator()(const SimilarityLogits& op) const {
    // Backward: the gradients of the products and, summed over all logits, of scale and bias.
    const Integer bias = op.bias ? 1 : 0;
    return each(op.elements(), {1 + bias, 3 + bias});
  }
  ElementwiseFlops operator()(const Scale& op) const { return each(op.elements, {1, 1}); }
  ElementwiseFlops operator()(const AltUpStep& op) const { return altup_flops(op); }
  ElementwiseFlops operator()(const TrainedScale& op) const {
    // Backward: the gradients of the input and, summed over rows, of the scale.
    return each(op.rows * op.width, {1, 3});
  }
  ElementwiseFlops operator()(const TimestepFeatures& op) const {
    // A product per frequency, then its cosine and its sine; a time step needs no gradient.
    return {op.batch * op.frequencies + op.elements(), {}};
  }
  ElementwiseFlops operator()(const TrainedShift& op) const {
    return each(op.elements(), {1, 1});  // backward: the sum over rows
  }
  ElementwiseFlops operator()(const Modulation& op) const { return modulation_flops(op); }
  ElementwiseFlops operator()(const SequenceRows&) const { return {}; }
  ElementwiseFlops operator()(const SoftCap& op) const { return each(op.elements, kSoftCapFlops); }
  ElementwiseFlops operator()(const CrossEntropy& op) const {
    return each(op.rows * op.classes, kCrossEntropyFlops);
  }
  ElementwiseFlops operator()(const Collective&) const { return {}; }  // counted in network bytes
};

}  // namespace

ElementwiseFlops elementwise_flops(const Op& op) { return std::visit(ElementwiseVisitor{}, op); }

}  // namespace headroom::detail
