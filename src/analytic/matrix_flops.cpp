// Matrix FLOPs: 2·m·n·k per GEMM `[m, k]`·`[k, n]`, summed over an operator's GEMMs.
#include "op_cost.h"

namespace headroom::detail {
namespace {

/// Products of the state, or of its shape, per token: the state at the key and its correction, or
/// what is added (and, of two vectors, the state at one and the removal along the other), and the
/// state at the query.
Integer products(StateUpdate update) {
  switch (update) {
    case StateUpdate::addition:
      return 2;
    case StateUpdate::two_vectors:
      return 4;
    case StateUpdate::delta:
      break;
  }
  return 3;
}

/// Backward costs twice the forward: one GEMM per gradient of the two operands.
MatrixFlops with_both_gradients(const Expr& forward) { return {forward, Integer{2} * forward}; }

/// 2·batch·heads·pairs·width: one of attention's two GEMMs.
Expr attention_product(const AttentionShape& shape, const Expr& pairs, const Expr& width) {
  return Integer{2} * shape.batch * shape.heads * pairs * width;
}

struct MatrixFlopsVisitor {
  Convention convention;
  const Expr& owned_parameters;

  [[nodiscard]] bool by_parameter() const { return convention == Convention::palm; }

  [[nodiscard]] MatrixFlops per_parameter(const Expr& rows) const {
    return with_both_gradients(Integer{2} * rows * owned_parameters);
  }

  /// A GEMM over these pairs, or over the half that Megatron-LM counts under a causal mask.
  [[nodiscard]] Expr eager_product(const AttentionShape& shape, const Expr& pairs, Masking masking,
                                   const Expr& width) const {
    const Expr half = shape.batch * shape.heads * pairs * width;
    const bool halves = convention == Convention::megatron && masking == Masking::causal;
    return halves ? half : Integer{2} * half;
  }

  MatrixFlops operator()(const TokenEmbedding& op) const {
    return by_parameter() ? per_parameter(op.tokens) : MatrixFlops{};
  }
  MatrixFlops operator()(const PatchEmbedding& op) const {
    if (by_parameter()) return per_parameter(op.patches);
    const Expr forward = Integer{2} * op.patches * op.patch_elements * op.width;
    return {forward, forward};  // pixels need no gradient
  }
  MatrixFlops operator()(const Linear& op) const {
    if (by_parameter()) return per_parameter(op.rows);
    return with_both_gradients(Integer{2} * op.rows * op.in_features * op.out_features);
  }
  MatrixFlops operator()(const DisentangledBias& op) const {
    // Projects the table once for all sequences; each term multiplies all its rows.
    const AttentionShape& shape = op.shape;
    const Expr projections =
        op.projections() * op.positions * op.width * shape.heads * shape.head_dim;
    const Expr terms = op.terms() * shape.query_elements() * op.positions;
    return with_both_gradients(Integer{2} * (projections + terms));
  }
  MatrixFlops operator()(const TransformerXlBias& op) const {
    // GEMMs with the keys of positions and of segments, and of the latter with one-hot rows.
    const AttentionShape& shape = op.shape;
    const Expr terms = shape.query_elements() * (op.positions + op.segments);
    return with_both_gradients(Integer{2} * (terms + shape.score_elements() * op.segments));
  }
  MatrixFlops operator()(const GatedPositionBias& op) const {
    return with_both_gradients(Integer{2} * Integer{GatedPositionBias::kValues} *
                               op.shape.query_elements());
  }
  MatrixFlops operator()(const LocalAttention& op) const {
    // Scores with the keys of a chunk and of the positions, and the context.
    const Integer products = 2 * op.context() + op.positions;
    return with_both_gradients(Integer{2} * products * op.query_elements());
  }
  MatrixFlops operator()(const ChannelScale& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const Norm& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const HeadNorm& op) const {
    return by_parameter() ? per_parameter(op.heads.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const PositionEmbedding& op) const {
    return by_parameter() ? per_parameter(op.tokens) : MatrixFlops{};
  }
  MatrixFlops operator()(const Convolution& op) const {
    const Expr outputs = op.batch * op.length;
    if (by_parameter()) return per_parameter(outputs);
    const Expr forward = Integer{2} * outputs * op.channels_read() * op.kernel * op.out_channels;
    if (op.channels_first) return {forward, forward};  // audio needs no gradient
    return with_both_gradients(forward);
  }
  MatrixFlops operator()(const GridConvolution& op) const {
    const Expr places = op.batch * Integer{op.places()};
    if (by_parameter()) return per_parameter(places);
    const Expr forward = Integer{2} * places * Integer{op.inputs()} * Integer{op.out_channels};
    if (op.reads_sound) return {forward, forward};  // audio needs no gradient
    return with_both_gradients(forward);
  }
  MatrixFlops operator()(const HeadLinear& op) const {
    return with_both_gradients(Integer{2} * op.rows * op.heads * op.in_features * op.out_features);
  }
  MatrixFlops operator()(const GroupedLinear& op) const {
    if (by_parameter()) return per_parameter(op.rows);
    return with_both_gradients(Integer{2} * op.rows * op.groups * op.in_features * op.out_features);
  }
  MatrixFlops operator()(const IndexScores& op) const {
    // q·k for every head, and their weighted sum if there is one.
    return with_both_gradients(Integer{2} * op.pairs() * op.heads * (op.head_dim + op.weights()));
  }
  MatrixFlops operator()(const StreamStep& op) const {
    // An update multiplies the streams by a square matrix, and attention residuals by a row of
    // probabilities; the row of another sum is counted element-wise.
    switch (op.kind) {
      case StreamStep::Kind::expand:
      case StreamStep::Kind::sum:
      case StreamStep::Kind::add:
      case StreamStep::Kind::mean:
        return {};
      case StreamStep::Kind::attend:
        return with_both_gradients(Integer{2} * op.elements());
      case StreamStep::Kind::update:
        break;
    }
    return with_both_gradients(Integer{2} * op.elements() * op.streams);
  }
  MatrixFlops operator()(const ExpertLinear& op) const {
    if (by_parameter()) {
      // A token uses the parameters of its experts only.
      const Expr met = owned_parameters.substitute(Symbol::num_experts, op.per_token);
      return with_both_gradients(Integer{2} * op.rows * met);
    }
    return with_both_gradients(Integer{2} * op.rows * op.per_token * op.in_features *
                               op.out_features);
  }
  MatrixFlops operator()(const AttentionScores& op) const {
    const Expr pairs = op.shape.score_products();
    return with_both_gradients(eager_product(op.shape, pairs, op.masking, op.shape.head_dim));
  }
  MatrixFlops operator()(const AttentionContext& op) const {
    const Expr pairs = op.shape.context_products();
    return with_both_gradients(eager_product(op.shape, pairs, op.masking, op.shape.value_head_dim));
  }
  MatrixFlops operator()(const FusedAttention& op) const {
    const AttentionShape& shape = op.shape;
    const Expr width = shape.head_dim + shape.value_head_dim;
    switch (convention) {
      case Convention::fvcore:
        return {};
      case Convention::megatron:
      case Convention::palm:
        return with_both_gradients(eager_product(shape, shape.pairs(), op.masking, width));
      case Convention::headroom:
      case Convention::torch:
        break;
    }
    // The backward pass recomputes the scores: five GEMMs for the forward pass's two.
    const Expr pairs = convention == Convention::torch ? shape.pairs() : op.pairs;
    const Expr backward_width = Integer{3} * shape.head_dim + Integer{2} * shape.value_head_dim;
    return {attention_product(shape, pairs, width),
            attention_product(shape, pairs, backward_width)};
  }
  MatrixFlops operator()(const LinearAttention& op) const {
    // φ(K)ᵀ·V and φ(Q)·S for each token and head, and the denominator φ(Q)·Σφ(K).
    const AttentionShape& shape = op.shape;
    const Expr state = shape.head_dim * shape.value_head_dim;
    const Expr rows = shape.batch * shape.queries * shape.heads;
    return with_both_gradients(rows * (Integer{4} * state + Integer{2} * shape.head_dim));
  }
  MatrixFlops operator()(const ShortConvolution& op) const {
    return with_both_gradients(Integer{2} * op.elements() * op.kernel);
  }
  MatrixFlops operator()(const StateSpaceScan& op) const {
    // Δ·x·Bᵀ is added to the state, and S·C is read from it, for each token and head.
    return with_both_gradients(Integer{4} * op.scanned_elements());
  }
  MatrixFlops operator()(const GatedDelta& op) const {
    return with_both_gradients(Integer{2} * products(op.update) * op.rows * op.heads * op.key_dim *
                               op.value_dim);
  }
  MatrixFlops operator()(const GatedLinearRecurrence& op) const {
    if (by_parameter()) return per_parameter(op.rows);
    return with_both_gradients(Integer{2} * Integer{2} * op.elements() * op.head_dim);
  }
  MatrixFlops operator()(const TokenMix& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const ValueBonus& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const WeightedKeyValue& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const Recurrence& op) const {
    if (by_parameter()) return per_parameter(op.batch * op.seq_len);
    // Each step multiplies the state before by every gate's square matrix.
    return with_both_gradients(Integer{2} * op.output_elements() * op.gates() * op.width);
  }
  MatrixFlops operator()(const TokenShift&) const { return {}; }
  MatrixFlops operator()(const Concatenate&) const { return {}; }
  MatrixFlops operator()(const OutputGate&) const { return {}; }
  MatrixFlops operator()(const RelativePositionBias&) const { return {}; }
  MatrixFlops operator()(const PositionTableRows&) const { return {}; }
  MatrixFlops operator()(const PatchRows&) const { return {}; }
  MatrixFlops operator()(const VisualTokens&) const { return {}; }
  MatrixFlops operator()(const RelativeSinusoids&) const { return {}; }
  MatrixFlops operator()(const Rotary&) const { return {}; }
  MatrixFlops operator()(const Clamp&) const { return {}; }
  MatrixFlops operator()(const TemperatureScale&) const { return {}; }
  MatrixFlops operator()(const LatentConcat&) const { return {}; }
  MatrixFlops operator()(const KeyCompression&) const { return {}; }
  MatrixFlops operator()(const KeySelect&) const { return {}; }
  MatrixFlops operator()(const PoolTokens&) const { return {}; }
  MatrixFlops operator()(const StreamWeights&) const { return {}; }
  MatrixFlops operator()(const KvCacheAppend&) const { return {}; }
  MatrixFlops operator()(const Softmax&) const { return {}; }
  MatrixFlops operator()(const GlobalRows&) const { return {}; }
  MatrixFlops operator()(const FeatureMap&) const { return {}; }
  MatrixFlops operator()(const Activation&) const { return {}; }
  MatrixFlops operator()(const GatedActivation&) const { return {}; }
  MatrixFlops operator()(const RouterSelect&) const { return {}; }
  MatrixFlops operator()(const ExpertCombine&) const { return {}; }
  MatrixFlops operator()(const RowGate&) const { return {}; }
  MatrixFlops operator()(const ResidualAdd&) const { return {}; }
  MatrixFlops operator()(const Dropout&) const { return {}; }
  MatrixFlops operator()(const SelectToken&) const { return {}; }
  MatrixFlops operator()(const UnitLength&) const { return {}; }
  MatrixFlops operator()(const RepeatedRow& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const SimilarityLogits& op) const {
    return with_both_gradients(Integer{2} * op.elements() * op.width);
  }
  MatrixFlops operator()(const Scale&) const { return {}; }
  MatrixFlops operator()(const AltUpStep& op) const {
    if (op.kind != AltUpStep::Kind::predict) return {};
    return with_both_gradients(Integer{2} * op.elements() * op.streams);
  }
  MatrixFlops operator()(const TrainedScale& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const TimestepFeatures&) const { return {}; }
  MatrixFlops operator()(const TrainedShift& op) const {
    return by_parameter() ? per_parameter(op.rows) : MatrixFlops{};
  }
  MatrixFlops operator()(const Modulation&) const { return {}; }
  MatrixFlops operator()(const SequenceRows&) const { return {}; }
  MatrixFlops operator()(const SoftCap&) const { return {}; }
  MatrixFlops operator()(const CrossEntropy&) const { return {}; }
  MatrixFlops operator()(const Collective&) const { return {}; }
};

/// fvcore counts a multiply-add as one.
MatrixFlops as_multiply_adds(const MatrixFlops& flops) {
  const auto halve = [](const Expr& expr) {
    std::vector<Term> terms(expr.terms().begin(), expr.terms().end());
    for (Term& term : terms) term.coefficient /= 2;  // every GEMM above has a factor of 2
    return Expr::from_terms(std::move(terms));
  };
  return {halve(flops.forward), halve(flops.backward)};
}

}  // namespace

MatrixFlops matrix_flops(const Op& op, Convention convention, const Expr& owned_parameters) {
  const MatrixFlops flops = std::visit(MatrixFlopsVisitor{convention, owned_parameters}, op);
  return convention == Convention::fvcore ? as_multiply_adds(flops) : flops;
}

}  // namespace headroom::detail
