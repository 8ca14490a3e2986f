// Op: one operator of a model, a closed variant of small structs. An op carries its sizes as Exprs,
// so counting it needs nothing else. No visitor has a catch-all branch, so a new op does not
// compile until it is counted, run and sharded.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "headroom/attention_op.h"
#include "headroom/expr.h"
#include "headroom/image_op.h"
#include "headroom/model_spec.h"
#include "headroom/state_op.h"

namespace headroom {

/// Source of the positions that are added to an embedding.
enum class AddedPositions { none, learned, sinusoidal };

/// Sum of rows looked up in the word, position and token-type tables.
/// `[batch, seq]` -> `[batch, seq, width]`
struct TokenEmbedding {
  Expr tokens;   ///< b·s
  Expr seq_len;  ///< distinct positions: s
  Expr width;
  AddedPositions positions = AddedPositions::none;
  Expr type_rows;  ///< rows of the token-type table; zero: no table
  EmbeddingScale scale = EmbeddingScale::none;
  double fixed_scale = 1;  ///< used when `scale` is fixed
};

/// Adds one row of a position table to every token, in place. `[batch, seq, width]`
struct PositionEmbedding {
  Expr tokens;
  Expr seq_len;
  Expr width;
};

/// Zeros around the input of a convolution that is not causal: half of kernel - 1 on either side,
/// an odd one at the end or in front; or none, so that the input has all positions that it reads.
enum class ConvolutionPadding { odd_at_end, odd_in_front, none };

/// Stored form of a convolution's weight: itself, or a direction and a length per tap (weight
/// normalisation, arXiv 1602.07868, eq. 2), both trained.
enum class ConvolutionWeight { plain, normalised_taps };

/// Convolution over positions, dense over channels or in groups. A causal one pads
/// (kernel - 1)·dilation zeros in front. `[batch, in_channels, inputs]` or
/// `[batch, inputs, in_channels]` -> `[batch, length, out_channels]`
struct Convolution {
  Expr batch;
  Expr in_channels;
  Expr out_channels;
  Expr kernel;
  Expr stride;
  Expr length;                  ///< of the output
  bool channels_first = false;  ///< of the input
  Expr dilation = Integer{1};   ///< input positions from one tap to the next
  Masking masking = Masking::none;
  bool bias = true;
  KeySource past = KeySource::projections;  ///< cache: prepends the cached last inputs
  Expr group_channels{};  ///< input channels of an output channel, in a grouped one; zero: all
  ConvolutionPadding padding = ConvolutionPadding::odd_at_end;
  ConvolutionWeight weight = ConvolutionWeight::plain;

  [[nodiscard]] bool is_grouped() const { return !group_channels.is_zero(); }
  [[nodiscard]] Expr channels_read() const { return is_grouped() ? group_channels : in_channels; }
  /// Input positions of a sequence, and those with the zeros around them.
  [[nodiscard]] Expr inputs() const {
    return padding == ConvolutionPadding::none ? padded_inputs() : stride * length;
  }
  [[nodiscard]] Expr padded_inputs() const {
    return (length - Integer{1}) * stride + reach() + Integer{1};
  }
  /// Earlier inputs that a causal output position reads.
  [[nodiscard]] Expr reach() const { return (kernel - Integer{1}) * dilation; }
};

/// Order of a 2-D convolution's output: `[batch, rows, columns, channels]`, or `[batch, columns,
/// channels, rows]`, so that a column is one vector.
enum class GridOrder { channels_last, rows_last };

/// Items of a 2-D convolution's batch: grids of their own, or consecutive rows of the grid of a
/// clip, so that an item reads rows of its neighbours. `later_rows_of_clips`: without a line of
/// zeros before the first row, so that an output reads its row and the two behind it.
enum class GridItems { grids, rows_of_clips, later_rows_of_clips };

/// 2-D convolution, 3 × 3 with stride 2 and one line of zeros around the input, dense over
/// channels.
/// `[batch, rows, columns, in_channels]` -> an output in the order `order`
struct GridConvolution {
  static constexpr std::int64_t kTaps = 9;
  Expr batch;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t rows = 0;  ///< of the input
  std::int64_t columns = 0;
  GridOrder order = GridOrder::channels_last;
  bool reads_sound = false;  ///< its input is that of the graph, which needs no gradient
  GridItems items = GridItems::grids;
  bool bias = true;

  [[nodiscard]] std::int64_t out_rows() const noexcept { return (rows + 1) / 2; }
  [[nodiscard]] std::int64_t out_columns() const noexcept { return (columns + 1) / 2; }
  /// Output places of one item of the batch.
  [[nodiscard]] std::int64_t places() const noexcept { return out_rows() * out_columns(); }
  /// Values that an output place reads.
  [[nodiscard]] std::int64_t inputs() const noexcept { return in_channels * kTaps; }
};

/// `[rows, in_features]` · `[in_features, out_features]` + bias
struct Linear {
  Expr rows;
  Expr in_features;
  Expr out_features;
  bool bias = false;
  Expr row_width{};  ///< stride between input rows; zero: in_features
};

/// Values that a norm normalises together: those of a position; those of a channel over all
/// positions of a sequence (a group norm with one channel per group, arXiv 1803.08494); or those of
/// a row and of all rows before it in its clip, each around the mean of its own row and those
/// before, with a weight per channel (transformers, Gemma3nAudioCumulativeGroupNorm).
enum class NormAxis { features, positions, earlier_rows };

/// Normalisation of `rows` groups of `width` values. Over features: `[rows, width]` ->
/// `[rows, width]`; over positions: `[batch, width, channels]`, with rows = batch·channels.
struct Norm {
  NormSpec spec;
  Expr rows;
  Expr width;
  Expr row_width{};  ///< stride between rows; zero: width
  NormAxis axis = NormAxis::features;
};

/// Weights of hyper-connections from their logits, in place: sigmoids of the sum before a sublayer
/// and the additions after it, and a matrix that Sinkhorn's algorithm makes doubly stochastic
/// (HyperConnectionSpec). `[rows, (2 + streams)·streams]`; without the matrix `[rows, 2·streams]`;
/// after the last layer, the sum only: `[rows, streams]`
struct StreamWeights {
  enum class Site { sublayer, last_sum };
  Site site = Site::sublayer;
  Expr rows;
  Expr streams;
  HyperConnectionSpec spec{};

  [[nodiscard]] bool mixes() const noexcept { return site == Site::sublayer && spec.mixes(); }
};

/// A step on residual streams. Of hyper-connections: `expand` copies hidden states `[rows, width]`
/// to `[rows, streams, width]`; `sum` takes streams and weights to `[rows, width]`; `update` takes
/// streams, a sublayer's output and weights to the next streams, in place, and so does `add`, which
/// does not mix the streams; `mean` takes streams to their mean `[rows, width]`. Of attention
/// residuals: `attend` takes `streams` tensors `[rows, width]` to their sum, weighted by a softmax
/// of one score each, the product of its norm and a trained vector (arXiv 2603.15031, eq. 2 to 4).
struct StreamStep {
  enum class Kind { expand, sum, update, add, mean, attend };
  Kind kind = Kind::expand;
  Expr rows;
  Expr streams;
  Expr width;
  double eps = 0;  ///< attend: of the norm

  [[nodiscard]] Expr elements() const { return rows * streams * width; }
};

/// Rows of two tensors side by side. `[rows, first]` and `[rows, second]` -> `[rows, first +
/// second]`
struct Concatenate {
  Expr rows;
  Expr first;
  Expr second;
};

/// x · f(gate), element-wise, in place. Both tensors have the same shape, or each of fewer gates
/// multiplies the values of one head.
struct OutputGate {
  ActivationKind kind = ActivationKind::sigmoid;
  Expr elements;
  Expr gates{};  ///< zero: one for each element

  [[nodiscard]] bool is_shared() const { return !gates.is_zero(); }
  [[nodiscard]] const Expr& gate_elements() const { return is_shared() ? gates : elements; }
};

/// Element-wise activation, in place.
struct Activation {
  ActivationKind kind = ActivationKind::gelu;
  Expr elements;
};

/// activation(gate) · up. `[rows, 2·width]` -> `[rows, width]`
struct GatedActivation {
  ActivationKind kind = ActivationKind::silu;
  Expr elements;  ///< of the output
  /// Gates at most this many standard deviations above their row's mean become 0, and the others
  /// lose that much.
  std::optional<double> cutoff{};
  /// Slices of a second input `[rows, slices·width]`, one per layer of the stack, each the `up` of
  /// its layer; zero: gate and up stand in one input.
  Expr slices{};
  double limit = 0;  ///< of the activated gate from above, and of `up` on both sides; 0: none
  std::optional<TanhCaps> caps{};  ///< in SiLU's place
};

/// x + m·f(x), in place; the second input is multiplied.
struct ResidualAdd {
  Expr elements;
  double multiplier = 1;
};

/// Top-k routing: selects `per_token` experts per row and their weights from the router's scores.
/// `[rows, num_experts]` -> `[rows, 2·per_token]`
struct RouterSelect {
  Expr rows;
  Expr num_experts;
  Expr per_token;
  ExpertsSpec spec;
};

/// Multiplies every row by the weights of its experts. Inputs: `[rows, in]` or the output of
/// another ExpertLinear, and the routing. -> `[rows·per_token, out]`, ordered by expert.
struct ExpertLinear {
  enum class Source { tokens, experts };
  Source source = Source::tokens;
  Expr rows;
  Expr num_experts;
  Expr per_token;
  Expr in_features;
  Expr out_features;
  bool bias = false;
  ExpertWeighting weighting = ExpertWeighting::output;
};

/// Weighted sum of each row's experts. `[rows·per_token, width]` and the routing -> `[rows, width]`
struct ExpertCombine {
  Expr rows;
  Expr per_token;
  Expr width;
  ExpertWeighting weighting = ExpertWeighting::output;
};

/// x · sigmoid(gate) with one gate per row, in place. `[rows, width]` and `[rows, 1]`
struct RowGate {
  Expr rows;
  Expr width;
};

/// x · w with one trained weight per channel, in place; with statistics, (x - mean) · factor or a
/// batch norm by stored means and variances (arXiv 1502.03167). `[rows, width]`
struct ChannelScale {
  enum class Statistics { none, mean_and_factor, batch_norm };
  Expr rows;
  Expr width;
  Statistics statistics = Statistics::none;
};

/// Dropout in training, in place; saves a mask.
struct Dropout {
  Expr elements;
};

/// Pools each sequence. `[batch, seq, d]` -> `[batch, d]`, or `[batch, 2·d]` for first_and_mean.
struct SelectToken {
  Expr elements;  ///< of the output
  TokenPooling pooling = TokenPooling::first;
  Expr averaged{};            ///< elements of the input that enter a mean
  std::int64_t token_id = 0;  ///< used when `pooling` names an id
};

/// Divides every row by its Euclidean length, in place. `[rows, width]`
struct UnitLength {
  Expr rows;
  Expr width;
};

/// Copies of a trained row. -> `[rows, width]`
struct RepeatedRow {
  Expr rows;
  Expr width;
};

/// Products of texts and images, times e^(trained scale), plus a trained bias (SimilarityHeadSpec).
/// `[texts, width]` and `[images, width]` -> `[texts, images]`
struct SimilarityLogits {
  Expr texts;
  Expr images;
  Expr width;
  bool bias = false;

  [[nodiscard]] Expr elements() const { return texts * images; }
};

/// Multiplies by a constant, in place.
struct Scale {
  Expr elements;
  double factor = 1;
  HeadRows part{};  ///< the part of each row that is multiplied; empty: all
};

/// One step of alternating updates (AltUpSpec) over streams `[streams, rows, width]`.
struct AltUpStep {
  enum class Kind {
    stack,    ///< one stream and the others, these scaled to its length -> all streams
    merge,    ///< the same, then their mean -> `[rows, width]`
    select,   ///< stream `index` -> `[rows, width]`
    predict,  ///< streams, coefficients `[rows, streams²]` -> streams + mixtures of all
    correct,  ///< streams, a layer's output, coefficients `[rows, streams]`, in place: adds the
              ///< output's difference from stream `index` times 1 + coefficient
    spread,   ///< streams and one more `[rows, width]`, in place: adds it to all but the first
  };
  Kind kind = Kind::select;
  Expr streams;
  Expr rows;
  Expr width;
  std::int64_t index = 0;

  [[nodiscard]] Expr stream_elements() const { return rows * width; }
  [[nodiscard]] Expr elements() const { return streams * rows * width; }
};

/// Multiplies every row by a trained vector `[width]`, or by one trained number, in place.
struct TrainedScale {
  Expr rows;
  Expr width;
};

/// Cosines and sines of one number per sequence, such as the time step, at `frequencies`
/// frequencies (arXiv 2006.11239, appendix B). `[batch]` -> `[batch, 2·frequencies]`
struct TimestepFeatures {
  Expr batch;
  Expr frequencies;

  [[nodiscard]] Expr elements() const { return batch * Integer{2} * frequencies; }
};

/// Adds a trained vector `[width]` to every row. Shorter rows, which divide `width`, are repeated.
/// `[rows, width / n]` -> `[rows, width]`
struct TrainedShift {
  Expr rows;
  Expr width;

  [[nodiscard]] Expr elements() const { return rows * width; }
};

/// Modulates tokens by vectors of their sequence, in place: x·(1 + scale) + shift, or x·gate
/// (adaptive layer norm, arXiv 2212.09748, section 3.2). Inputs: `[batch, tokens, width]` and
/// `[batch, vectors·width]`.
struct Modulation {
  enum class Kind { scale_and_shift, gate };
  Kind kind = Kind::scale_and_shift;
  Expr batch;
  Expr tokens;
  Expr width;
  std::int64_t first_vector = 0;  ///< of those that it reads

  [[nodiscard]] Expr elements() const { return batch * tokens * width; }
  [[nodiscard]] std::int64_t vectors() const noexcept {
    return kind == Kind::scale_and_shift ? 2 : 1;
  }
};

/// Copies rows of sequences. `join` appends each sequence of its second input to that of its first,
/// which has `first` tokens; `take` copies `tokens` tokens from number `first` on.
/// -> `[batch, tokens, width]`
struct SequenceRows {
  enum class Kind { join, take };
  Kind kind = Kind::join;
  Expr batch;
  Expr first;
  Expr tokens;
  Expr width;

  [[nodiscard]] Expr elements() const { return batch * tokens * width; }
};

/// cap · tanh(x / cap), in place.
struct SoftCap {
  Expr elements;
  double cap = 1;
};

/// Mean negative log-likelihood of a log-softmax over the classes. `[rows, classes]` -> scalar
struct CrossEntropy {
  Expr rows;
  Expr classes;
  SoftmaxPrecision precision = SoftmaxPrecision::activation;
};

/// Ranks that communicate with each other, one group per dimension of a parallel plan.
enum class RankGroup { tensor, context, pipeline, expert, data };
enum class CollectiveKind {
  none,            ///< no communication in this direction
  all_reduce,      ///< every rank receives the sum of all buffers
  all_gather,      ///< every rank receives all shards
  reduce_scatter,  ///< every rank receives its shard of the sum
  all_to_all,      ///< every rank sends a different shard to every other
  send,            ///< point to point
};

/// The pass in which a collective brings tokens, or their gradients, to the experts. Some recipes
/// send these in 8 bits, and what comes back in 16 (arXiv 2412.19437, section 3.3.3).
enum class Dispatch { none, forward, backward };

/// The values of each row whose squares a norm averages: `width` of `row_width`, from `first`. They
/// are part of one of `groups` that the ranks share.
struct RowSquares {
  Integer groups = 1;
  Expr rows;
  Expr first;
  Expr width;
  Expr row_width;
};

/// A router's choice for one token: `per_token` of `experts`, within `chosen_groups` of `groups`.
struct TokenRouting {
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t groups = 1;
  std::int64_t chosen_groups = 1;
};

/// Communication between the ranks of a group in the forward and backward pass. Occurs only in a
/// sharded graph (parallel_plan.h), whose forward pass runs over several processes.
struct Collective {
  RankGroup group = RankGroup::tensor;
  CollectiveKind forward = CollectiveKind::none;
  CollectiveKind backward = CollectiveKind::none;
  /// all_gather, reduce_scatter: one rank's shard. Others: the whole buffer.
  Expr bytes;
  Symbol whole = Symbol::seq_len;  ///< all_gather: the gathered length
  Symbol held = Symbol::seq_len;   ///< all_gather: a rank's shard of it, saved between the passes
  Dispatch dispatch = Dispatch::none;
  /// all_reduce: the sums of squares that a norm over divided features needs, in float32:
  /// `[rows, groups]`.
  std::optional<RowSquares> squares{};
  std::optional<TokenRouting> routing{};  ///< all_to_all: of the tokens that it exchanges
};

using OpVariant = std::variant<
    TokenEmbedding, PositionEmbedding, PatchEmbedding, PatchRows, VisualTokens, Convolution,
    GridConvolution, RelativePositionBias, PositionTableRows, DisentangledBias, RelativeSinusoids,
    TransformerXlBias, GatedPositionBias, LocalAttention, Linear, Norm, HeadNorm, Rotary, Clamp,
    TemperatureScale, LatentConcat, HeadLinear, GroupedLinear, KeyCompression, IndexScores,
    KeySelect, PoolTokens, StreamWeights, StreamStep, KvCacheAppend, AttentionScores, Softmax,
    AttentionContext, FusedAttention, GlobalRows, FeatureMap, LinearAttention, ShortConvolution,
    StateSpaceScan, GatedDelta, GatedLinearRecurrence, TokenShift, TokenMix, ValueBonus,
    WeightedKeyValue, Concatenate, Recurrence, OutputGate, Activation, GatedActivation,
    RouterSelect, ExpertLinear, ExpertCombine, RowGate, ResidualAdd, ChannelScale, Dropout,
    SelectToken, UnitLength, RepeatedRow, SimilarityLogits, Scale, AltUpStep, TrainedScale,
    TimestepFeatures, TrainedShift, Modulation, SequenceRows, SoftCap, CrossEntropy, Collective>;

namespace detail {

template <class T, class Variant>
inline constexpr bool kIsAlternative = false;
template <class T, class... Alternatives>
inline constexpr bool kIsAlternative<T, std::variant<Alternatives...>> =
    (std::same_as<T, Alternatives> || ...);

}  // namespace detail

/// One operator: std::visit, std::get_if and std::holds_alternative take it as a variant. Copies,
/// moves and the destructor compile once: inline, they add seconds to every unit that copies a
/// graph.
struct Op : OpVariant {
  Op();
  template <class Operator>
  requires detail::kIsAlternative<Operator, OpVariant> Op(Operator op)
      : OpVariant(std::in_place_type<Operator>, std::move(op)) {}
  Op(const Op& other);
  Op(Op&& other) noexcept;
  Op& operator=(const Op& other);
  Op& operator=(Op&& other) noexcept;
  ~Op();
};

}  // namespace headroom
