#include "kernel_calls.h"

#include <algorithm>
#include <cmath>

#include "activation_calls.h"
#include "headroom/error.h"
#include "state_calls.h"
#include "timed_calls.h"
#include "visit.h"

namespace headroom::detail {
namespace {

[[noreturn]] void only_in_training() {
  throw Error(ErrorCode::internal, "the time of a training step is not predicted");
}

class CallVisitor {
 public:
  CallVisitor(const NodePlace& place, const Bindings& sizes, const LinearPolicy& policy)
      : place_(place), sizes_(sizes), policy_(policy) {}

  using Calls = std::vector<KernelCall>;

  Calls operator()(const TokenEmbedding& op) const {
    return {{KernelKind::embedding, {number(op.tokens), number(op.width)}, {}}};
  }
  Calls operator()(const PatchEmbedding& op) const {
    const double rows = number(op.patches);
    const double out = rows * number(op.width);
    return {linear(rows, number(op.patch_elements), number(op.width)),
            elements(KernelKind::copy, rows * number(op.patch_elements)),
            elements(KernelKind::copy, out), elements(KernelKind::residual_add, out)};
  }
  Calls operator()(const PatchRows& op) const {
    return {elements(op.averages() ? KernelKind::residual_add : KernelKind::copy,
                     number(op.elements()))};
  }
  Calls operator()(const RelativePositionBias& op) const {
    return {elements(KernelKind::relative_position_bias, number(op.elements()))};
  }
  Calls operator()(const PositionTableRows& op) const {
    return {elements(KernelKind::copy, number(op.rows * op.width))};
  }
  Calls operator()(const DisentangledBias& op) const {
    const AttentionShape& shape = op.shape;
    KernelCall projection =
        linear(number(op.positions), number(op.width), number(shape.heads * shape.head_dim));
    projection.times = static_cast<double>(op.projections());
    AttentionShape all_positions = shape;
    all_positions.keys = op.positions;
    KernelCall scores{KernelKind::attention_scores, attention(all_positions), {}};
    scores.times = static_cast<double>(op.terms());
    KernelCall gather = elements(KernelKind::residual_add, number(shape.score_elements()));
    gather.times = scores.times;
    return {projection, scores, gather};
  }
  Calls operator()(const OneOf<VisualTokens, RelativeSinusoids> auto& op) const {
    return {elements(KernelKind::copy, number(op.elements()))};
  }
  Calls operator()(const TransformerXlBias& op) const {
    AttentionShape all_positions = op.shape;
    all_positions.keys = op.positions;
    return {{KernelKind::attention_scores, attention(all_positions), {}},
            elements(KernelKind::residual_add, number(op.shape.score_elements()))};
  }
  Calls operator()(const GatedPositionBias& op) const {
    const auto values = static_cast<double>(GatedPositionBias::kValues);
    return {linear(number(op.gated_rows()), number(op.shape.head_dim), values),
            elements(KernelKind::residual_add, number(op.shape.score_elements()))};
  }
  Calls operator()(const LocalAttention& op) const {
    AttentionShape shape{
        Integer{1}, op.heads, op.heads, op.head_dim, op.head_dim, op.rows, Integer{op.context()}};
    AttentionShape positions = shape;
    positions.keys = Integer{op.positions};
    return {{KernelKind::attention_scores, attention(shape), {}},
            {KernelKind::attention_scores, attention(positions), {}},
            {KernelKind::attention_softmax, attention(shape), {}},
            {KernelKind::attention_context, attention(shape), {}}};
  }
  Calls operator()(const Linear& op) const {
    return {linear(number(op.rows), number(op.in_features), number(op.out_features))};
  }
  Calls operator()(const PositionEmbedding& op) const {
    return {elements(KernelKind::residual_add, number(op.tokens * op.width))};
  }
  Calls operator()(const GridConvolution& op) const {
    // A gathered copy of the inputs and a GEMM for each item of the batch.
    const auto places = static_cast<double>(op.places());
    const auto inputs = static_cast<double>(op.inputs());
    KernelCall gemm = linear(places, inputs, static_cast<double>(op.out_channels));
    gemm.times = number(op.batch);
    return {gemm, elements(KernelKind::copy, number(op.batch) * places * inputs)};
  }
  Calls operator()(const Convolution& op) const {
    // One GEMM per tap of the kernel, or per group of channels, and a zero-padded copy of the
    // input.
    const double rows = number(op.batch * op.length);
    const double inputs = number(op.batch * op.inputs() * op.in_channels);
    if (op.is_grouped()) {
      const double groups = number(op.in_channels) / number(op.group_channels);
      KernelCall gemm =
          linear(rows, number(op.group_channels * op.kernel), number(op.out_channels) / groups);
      gemm.times = groups;
      const double gathered = rows * number(op.kernel * op.in_channels + op.out_channels);
      return {gemm, elements(KernelKind::copy, inputs), elements(KernelKind::copy, gathered)};
    }
    KernelCall gemm = linear(rows, number(op.in_channels), number(op.out_channels));
    gemm.times = number(op.kernel);
    return {gemm, elements(KernelKind::copy, inputs)};
  }
  Calls operator()(const Norm& op) const {
    return {norm(op.spec, number(op.rows), number(op.width))};
  }
  Calls operator()(const HeadNorm& op) const {
    const double rows = number(op.heads.rows);
    const double heads = number(op.heads.heads);
    const double width = number(op.heads.head_dim);
    if (op.scope == QueryKeyNormScope::all_heads) return {norm(op.spec, rows, heads * width)};
    return {norm(op.spec, rows * heads, width)};
  }
  Calls operator()(const Rotary& op) const {
    return {elements(KernelKind::rotary, number(op.elements()))};
  }
  Calls operator()(const Clamp& op) const {
    return {elements(KernelKind::relu, number(op.elements))};
  }
  Calls operator()(const TemperatureScale& op) const {
    return {elements(KernelKind::scale, number(op.heads.elements()))};
  }
  Calls operator()(const LatentConcat& op) const {
    const Expr head = Integer{2} * (op.nope_dim + op.rope_dim) + op.value_dim;
    return {elements(KernelKind::copy, number(op.rows * op.heads * head))};
  }
  Calls operator()(const HeadLinear& op) const {
    return {head_linears(op.heads, op.rows, op.in_features, op.out_features)};
  }
  Calls operator()(const GroupedLinear& op) const {
    KernelCall call = linear(number(op.rows), number(op.in_features), number(op.out_features));
    call.times = number(op.groups);
    return {call};
  }
  Calls operator()(const KeyCompression& op) const {
    return {elements(KernelKind::silu_gated, number(op.summed()))};
  }
  Calls operator()(const IndexScores& op) const {
    const bool is_separate = op.result == IndexHeads::separate;
    if (is_separate && number(op.queries) == 1) {
      const KernelSizes step{number(op.batch), number(op.heads), number(op.keys),
                             number(op.head_dim)};
      return {{KernelKind::step_scores_cold, step, KernelKind::step_scores_warm}};
    }
    if (is_separate) {
      const KernelSizes sizes{number(op.batch * op.heads), number(op.queries), number(op.keys),
                              number(op.head_dim)};
      return {{KernelKind::attention_scores, sizes, {}}};
    }
    // The heads of a query are rows of one product, whose sum stays in cache.
    const KernelSizes sizes{number(op.batch), number(op.heads * op.queries), number(op.keys),
                            number(op.head_dim)};
    KernelCall sum = elements(KernelKind::relu_gated, number(op.heads * op.keys));
    sum.times = number(op.batch * op.queries);
    return {{KernelKind::attention_scores, sizes, {}}, sum};
  }
  Calls operator()(const KeySelect& op) const {
    // A pass over the keys for each halving of the floats' range: over sign and exponent, then
    // until the keys differ. Blocks of keys are read once and written once.
    constexpr double kExponentBits = 9;
    const double rate = static_cast<double>(op.rate);
    const double seen = number(op.keys) - (number(op.queries) - 1) / (2 * rate);
    const double keys = std::max(1.0, seen);
    KernelCall passes = elements(KernelKind::relu, number(op.batch * op.heads * op.queries) * keys);
    passes.times = op.block_size > 1 ? 2 : kExponentBits + std::log2(keys);
    return {passes};
  }
  Calls operator()(const PoolTokens& op) const {
    return {elements(KernelKind::copy, number(op.batch * op.queries * op.keys))};
  }
  Calls operator()(const StreamWeights& op) const {
    if (!op.mixes()) {
      const double vectors = op.site == StreamWeights::Site::sublayer ? 2 : 1;
      return {elements(KernelKind::silu, vectors * number(op.rows * op.streams))};
    }
    const KernelCall weights =
        elements(KernelKind::silu, number(op.rows * op.streams * (op.streams + Integer{2})));
    // Columns, then rows and columns of each iteration: a sum, and a product with its inverse.
    KernelCall lines =
        elements(KernelKind::residual_add, number(op.rows * op.streams * op.streams));
    lines.times = 2.0 * static_cast<double>(op.spec.sinkhorn_iterations) - 1;
    return {weights, lines};
  }
  Calls operator()(const StreamStep& op) const {
    KernelCall call = elements(KernelKind::residual_add, number(op.elements()));
    // Each stream is the sum of all streams and of the sublayer's output.
    if (op.kind == StreamStep::Kind::update) call.times = number(op.streams + Integer{1});
    // Attention residuals read their streams for the scores, and again for the sum.
    if (op.kind == StreamStep::Kind::attend) call.times = 2;
    return {call};
  }
  Calls operator()(const KvCacheAppend& op) const {
    return {elements(KernelKind::copy, number(op.elements))};
  }
  Calls operator()(const AttentionScores& op) const {
    if (is_step(op.shape)) {
      return {{KernelKind::step_scores_cold, step(op.shape, number(op.shape.keys)),
               KernelKind::step_scores_warm}};
    }
    return {{KernelKind::attention_scores, attention(op.shape), {}}};
  }
  Calls operator()(const Softmax&) const {
    const AttentionScores& scores = scores_before();
    const AttentionShape& shape = scores.shape;
    KernelCall call{KernelKind::attention_softmax, attention(shape), {}};
    call.sizes.pop_back();
    const bool causal = scores.masking == Masking::causal && number(shape.queries) > 1;
    if (scores.shaping.bias != ScoreBias::none) {
      // The softmax adds the bias to unmasked scores only.
      call.kind = KernelKind::attention_softmax_biased;
      if (causal) call.sizes[kKeysAxis] -= (number(shape.queries) - 1) / 2;
    } else if (causal) {
      call.kind = KernelKind::attention_softmax_causal;
    }
    return {call};
  }
  Calls operator()(const AttentionContext& op) const {
    KernelCall call{KernelKind::attention_context, attention(op.shape), {}};
    if (is_step(op.shape)) {
      call = {KernelKind::step_context_cold, step(op.shape, number(op.shape.keys)),
              KernelKind::step_context_warm};
    }
    call.sizes.back() = number(op.shape.value_head_dim);
    return {call};
  }
  Calls operator()(const FusedAttention& op) const {
    // The kernel skips keys outside the window: its time is that of the visible keys.
    const double seen_keys = number(op.pairs) / number(op.shape.queries);
    if (is_step(op.shape)) {
      return {
          {KernelKind::step_fused_cold, step(op.shape, seen_keys), KernelKind::step_fused_warm}};
    }
    if (op.shaping.window.kind != WindowKind::none) {
      KernelSizes seen = attention(op.shape);
      seen[kKeysAxis] = seen_keys;
      return {{KernelKind::attention_fused, seen, {}}};
    }
    // In decode a causal mask hides no key and costs nothing.
    const double hidden = number(op.shape.pairs()) - number(op.pairs);
    const bool causal = op.masking == Masking::causal && hidden > 0;
    if (!causal) return {{KernelKind::attention_fused, attention(op.shape), {}}};
    // Heads that share keys run together, so that blocks cover fewer masked pairs.
    KernelSizes sizes = attention(op.shape);
    sizes.insert(sizes.begin() + 1, number(op.shape.heads) / number(op.shape.kv_heads));
    return {{KernelKind::attention_fused_causal, sizes, {}}};
  }
  Calls operator()(const GlobalRows& op) const {
    if (op.kind == GlobalRows::Kind::sum) {
      return {elements(KernelKind::residual_add, number(op.added()))};
    }
    return {elements(KernelKind::copy, number(op.elements()))};
  }
  Calls operator()(const FeatureMap& op) const {
    const HeadRows& rows = op.heads;
    switch (op.kind) {
      case FeatureMapKind::elu_plus_one:
      case FeatureMapKind::exp:
        break;
      case FeatureMapKind::relu:
        return {elements(KernelKind::relu, number(rows.elements()))};
      case FeatureMapKind::softmax:
        return {{KernelKind::attention_softmax,
                 {1, number(rows.rows * rows.heads), number(rows.head_dim)},
                 {}}};
    }
    return {elements(KernelKind::feature_map, number(rows.elements()))};
  }
  Calls operator()(const LinearAttention& op) const {
    const bool causal = op.masking == Masking::causal;
    return {{causal ? KernelKind::linear_attention_causal : KernelKind::linear_attention,
             {number(op.shape.batch * op.shape.heads), number(op.shape.queries),
              number(op.shape.head_dim)},
             {}}};
  }
  Calls operator()(const OneOf<ShortConvolution, StateSpaceScan, GatedDelta, TokenShift, TokenMix,
                               ValueBonus, WeightedKeyValue> auto& op) const {
    return state_calls(op, sizes_);
  }
  Calls operator()(const GatedLinearRecurrence& op) const {
    KernelCall state = elements(KernelKind::silu, number(op.elements()));
    state.times = 4;  // exponentials
    const double tokens = number(op.rows) / number(op.batch);
    const Expr gates = Integer{2} * op.head_dim;
    if (tokens == 1) return {head_linears(op.heads, op.batch, op.head_dim, gates), state};
    // Unpacked weights are multiplied as the values of attention are.
    const KernelSizes sizes{number(op.batch * op.heads), tokens, number(op.head_dim),
                            number(gates)};
    return {{KernelKind::attention_context, sizes, {}}, state};
  }
  Calls operator()(const Concatenate& op) const {
    return {elements(KernelKind::copy, number(op.rows * (op.first + op.second)))};
  }
  Calls operator()(const Recurrence& op) const {
    // A GEMM of few rows per step, whose weights the previous step left in cache.
    const double steps = number(op.seq_len);
    const double units = number(op.batch * op.width);
    const KernelSizes sizes{number(op.batch), number(op.width), number(op.gates() * op.width)};
    KernelCall gemm{recurrent_kernel(), sizes, {}};
    KernelCall gates = elements(KernelKind::silu, units * number(op.gates()));
    gemm.times = steps;
    gates.times = steps;
    return {gemm, gates};
  }
  Calls operator()(const OutputGate& op) const {
    const KernelKind kernel = op.is_shared() ? KernelKind::scale : KernelKind::silu_gated;
    return {elements(kernel, number(op.elements))};
  }
  Calls operator()(const Activation& op) const {
    return activation_calls(op.kind, number(op.elements), policy_.engine);
  }
  Calls operator()(const GatedActivation& op) const {
    return {elements(kernels_of(op.kind).gated, number(op.elements))};
  }
  Calls operator()(const RouterSelect& op) const {
    return {{KernelKind::attention_softmax, {1, number(op.rows), number(op.num_experts)}, {}}};
  }
  Calls operator()(const ExpertLinear& op) const {
    // Rows spread evenly over the experts in use.
    const double experts = std::max(1.0, number(Symbol::experts_read));
    const double rows = std::max(1.0, number(op.rows * op.per_token) / experts);
    KernelCall call = linear(rows, number(op.in_features), number(op.out_features));
    call.times = experts;
    return {call};
  }
  Calls operator()(const ExpertCombine& op) const {
    return {elements(KernelKind::residual_add, number(op.rows * op.per_token * op.width))};
  }
  Calls operator()(const RowGate& op) const {
    return {elements(KernelKind::scale, number(op.rows * op.width))};
  }
  Calls operator()(const ResidualAdd& op) const {
    return {elements(KernelKind::residual_add, number(op.elements))};
  }
  Calls operator()(const Dropout&) const { only_in_training(); }
  Calls operator()(const ChannelScale& op) const {
    return {elements(KernelKind::scale, number(op.rows * op.width))};
  }
  Calls operator()(const SelectToken& op) const {
    if (!op.averaged.is_zero()) return {elements(KernelKind::residual_add, number(op.averaged))};
    return {elements(KernelKind::copy, number(op.elements))};
  }
  Calls operator()(const UnitLength& op) const {
    return {norm({NormKind::rms_norm, false}, number(op.rows), number(op.width))};
  }
  Calls operator()(const RepeatedRow& op) const {
    return {elements(KernelKind::copy, number(op.rows * op.width))};
  }
  Calls operator()(const SimilarityLogits& op) const {
    return {{KernelKind::attention_scores,
             {1, number(op.texts), number(op.images), number(op.width)},
             {}}};
  }
  Calls operator()(const Scale& op) const {
    return {elements(KernelKind::scale, number(op.elements))};
  }
  Calls operator()(const AltUpStep& op) const {
    switch (op.kind) {
      case AltUpStep::Kind::select:
        return {elements(KernelKind::copy, number(op.stream_elements()))};
      case AltUpStep::Kind::stack:
      case AltUpStep::Kind::merge:
        return {norm({NormKind::rms_norm, false}, number(op.streams * op.rows), number(op.width))};
      case AltUpStep::Kind::predict: {  // one pass over a stream per coefficient
        KernelCall call = elements(KernelKind::residual_add, number(op.elements()));
        call.times = number(op.streams);
        return {call};
      }
      case AltUpStep::Kind::correct:
      case AltUpStep::Kind::spread:
        break;
    }
    return {elements(KernelKind::residual_add, number(op.elements()))};
  }
  Calls operator()(const TrainedScale& op) const {
    return {elements(KernelKind::scale, number(op.rows * op.width))};
  }
  Calls operator()(const TimestepFeatures& op) const {
    return {elements(KernelKind::copy, number(op.elements()))};
  }
  Calls operator()(const TrainedShift& op) const {
    return {elements(KernelKind::residual_add, number(op.elements()))};
  }
  Calls operator()(const Modulation& op) const {
    const bool shifts = op.kind == Modulation::Kind::scale_and_shift;
    return {elements(shifts ? KernelKind::residual_add : KernelKind::scale, number(op.elements()))};
  }
  Calls operator()(const SequenceRows& op) const {
    return {elements(KernelKind::copy, number(op.elements()))};
  }
  Calls operator()(const SoftCap& op) const {
    return {elements(KernelKind::tanh, number(op.elements))};
  }
  Calls operator()(const CrossEntropy&) const { only_in_training(); }
  Calls operator()(const Collective&) const {
    throw Error(ErrorCode::internal, "kernel times of a sharded graph are not predicted");
  }

 private:
  [[nodiscard]] double number(const Expr& expr) const {
    return static_cast<double>(expr.evaluate(sizes_));
  }

  /// The node that computed the scores of this softmax.
  [[nodiscard]] const AttentionScores& scores_before() const {
    const TensorId scores = place_.node.inputs.front();
    const auto producer = std::ranges::find(place_.block.nodes, scores, &Node::output);
    return std::get<AttentionScores>(producer->op);
  }

  static KernelCall elements(KernelKind kind, double count) { return {kind, {count}, {}}; }

  static KernelCall norm(const NormSpec& spec, double rows, double width) {
    const bool centred = spec.kind == NormKind::layer_norm;
    return {centred ? KernelKind::layer_norm : KernelKind::rms_norm, {rows, width}, {}};
  }

  /// Index of the keys in the sizes of an attention kernel.
  static constexpr std::size_t kKeysAxis = 2;

  /// Returns whether there is one query per sequence, as in decode.
  [[nodiscard]] bool is_step(const AttentionShape& shape) const {
    return number(shape.queries) == 1;
  }

  /// Sizes of a decode step, in which grouped query heads read each key once.
  [[nodiscard]] KernelSizes step(const AttentionShape& shape, double keys) const {
    return {number(shape.batch * shape.kv_heads), number(shape.heads) / number(shape.kv_heads),
            keys, number(shape.head_dim)};
  }

  /// Images run one by one, each with its average number of keys.
  [[nodiscard]] KernelSizes attention(const AttentionShape& shape) const {
    if (!shape.image_pairs.is_zero()) {
      const double keys = number(shape.image_pairs) / number(shape.queries);
      if (shape.scope == ImageScope::probe) {
        const double probes = number(shape.queries) * number(shape.heads);
        return {probes, 1, keys, number(shape.head_dim)};
      }
      const double images = number(shape.queries) / keys;
      return {images * number(shape.heads), keys, keys, number(shape.head_dim)};
    }
    // Chunks that overlap multiply some pairs twice.
    const double keys = number(shape.score_products()) / number(shape.queries);
    return {number(shape.batch * shape.heads), number(shape.queries), keys, number(shape.head_dim)};
  }

  /// The GEMM of a recurrence's step.
  [[nodiscard]] KernelKind recurrent_kernel() const {
    if (policy_.engine == MeasuredEngine::pytorch) return KernelKind::linear_warm;
    return policy_.narrow ? KernelKind::linear_bfloat16_warm : KernelKind::stream_float32_warm;
  }

  [[nodiscard]] KernelCall linear(double rows, double in, double out) const {
    const KernelSizes sizes{rows, in, out};
    if (policy_.narrow) {
      return {KernelKind::linear_bfloat16_cold, sizes, KernelKind::linear_bfloat16_warm};
    }
    if (policy_.streams(place_.node.component.part, rows)) {
      return {KernelKind::stream_float32_cold, sizes, KernelKind::stream_float32_warm};
    }
    return {KernelKind::linear_cold, sizes, KernelKind::linear_warm};
  }

  /// One linear layer per head. `measure` runs those of few rows side by side and holds their
  /// weights in float32, whatever their stored type.
  [[nodiscard]] KernelCall head_linears(const Expr& heads, const Expr& rows, const Expr& in,
                                        const Expr& out) const {
    if (policy_.engine == MeasuredEngine::headroom && number(rows) <= kFewRows) {
      return {KernelKind::stream_float32_cold,
              {number(rows), number(in), number(heads * out)},
              KernelKind::stream_float32_warm};
    }
    KernelCall call = linear(number(rows), number(in), number(out));
    call.times = number(heads);
    return call;
  }

  NodePlace place_;
  const Bindings& sizes_;
  const LinearPolicy& policy_;
};

}  // namespace

std::vector<KernelCall> kernel_calls(const NodePlace& place, const Bindings& sizes,
                                     const LinearPolicy& policy) {
  return timed_calls(std::visit(CallVisitor(place, sizes, policy), place.node.op), policy.engine);
}

}  // namespace headroom::detail
