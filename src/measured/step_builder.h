// StepBuilder: the visit of the `Op` variant that binds each operator to its kernel. Internal to
// src/measured.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "expert_exchange.h"
#include "images.h"
#include "kernels/attention.h"
#include "kernels/blocked_attention.h"
#include "kernels/convolution.h"
#include "kernels/experts.h"
#include "kernels/key_compression.h"
#include "kernels/normalize.h"
#include "kernels/rotary.h"
#include "kernels/sliding_chunks.h"
#include "kernels/state_kernels.h"
#include "kernels/transient_global.h"
#include "program.h"

namespace headroom::measured {

/// Bytes of a float32, as a signed factor.
inline constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

/// Throws Error{internal} for a collective without ranks.
void require_group(const Communicator* group);

/// Copies an operator's first input to its output; does nothing if the operator runs in place.
struct InputCopy {
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t bytes = 0;

  void operator()() const {
    if (from != to) std::memcpy(to, from, bytes);
  }
};

class StepBuilder {
 public:
  StepBuilder(Program& program, const Block& block);

  /// Returns the function that runs `node` in a layer of the block.
  [[nodiscard]] std::function<StepCount(std::int64_t layer)> step(const Node& node);

  using Run = std::function<StepCount(std::int64_t layer)>;
  Run operator()(const TokenEmbedding& op);
  Run operator()(const PositionEmbedding& op);
  Run operator()(const PatchEmbedding& op);
  Run operator()(const GridConvolution& op);
  Run operator()(const PatchRows& op);
  Run operator()(const VisualTokens& op);
  Run operator()(const Convolution& op);
  Run operator()(const RelativePositionBias& op);
  Run operator()(const PositionTableRows& op);
  Run operator()(const DisentangledBias& op);
  Run operator()(const RelativeSinusoids& op);
  Run operator()(const TransformerXlBias& op);
  Run operator()(const GatedPositionBias& op);
  Run operator()(const LocalAttention& op);
  Run operator()(const Linear& op);
  Run operator()(const Norm& op);
  Run operator()(const HeadNorm& op);
  Run operator()(const Rotary& op);
  Run operator()(const Clamp& op);
  Run operator()(const TemperatureScale& op);
  Run operator()(const LatentConcat& op);
  Run operator()(const HeadLinear& op);
  Run operator()(const GroupedLinear& op);
  Run operator()(const KeyCompression& op);
  Run operator()(const IndexScores& op);
  Run operator()(const KeySelect& op);
  Run operator()(const PoolTokens& op);
  Run operator()(const StreamWeights& op);
  Run operator()(const StreamStep& op);
  Run operator()(const KvCacheAppend& op);
  Run operator()(const AttentionScores& op);
  Run operator()(const Softmax& op);
  Run operator()(const AttentionContext& op);
  Run operator()(const FusedAttention& op);
  Run operator()(const GlobalRows& op);
  Run operator()(const FeatureMap& op);
  Run operator()(const LinearAttention& op);
  Run operator()(const ShortConvolution& op);
  Run operator()(const StateSpaceScan& op);
  Run operator()(const GatedDelta& op);
  Run operator()(const GatedLinearRecurrence& op);
  Run operator()(const TokenShift& op);
  Run operator()(const TokenMix& op);
  Run operator()(const ValueBonus& op);
  Run operator()(const WeightedKeyValue& op);
  Run operator()(const Concatenate& op);
  Run operator()(const Recurrence& op);
  Run operator()(const OutputGate& op);
  Run operator()(const Activation& op);
  Run operator()(const GatedActivation& op);
  Run operator()(const RouterSelect& op);
  Run operator()(const ExpertLinear& op);
  Run operator()(const ExpertCombine& op);
  Run operator()(const RowGate& op);
  Run operator()(const ResidualAdd& op);
  Run operator()(const ChannelScale& op);
  Run operator()(const Dropout& op);
  Run operator()(const SelectToken& op);
  Run operator()(const UnitLength& op);
  Run operator()(const RepeatedRow& op);
  Run operator()(const SimilarityLogits& op);
  Run operator()(const Scale& op);
  Run operator()(const AltUpStep& op);
  Run operator()(const TrainedScale& op);
  Run operator()(const TimestepFeatures& op);
  Run operator()(const TrainedShift& op);
  Run operator()(const Modulation& op);
  Run operator()(const SequenceRows& op);
  Run operator()(const SoftCap& op);
  Run operator()(const CrossEntropy& op);
  Run operator()(const Collective& op);

 private:
  /// Operands of attention in one layer of one run.
  using Arguments = std::function<AttentionArguments(std::int64_t layer)>;
  template <class Op>
  [[nodiscard]] Arguments attention(const Op& op);
  [[nodiscard]] AttentionArguments attention_sizes(const AttentionShape& shape) const;
  void set_operands(AttentionArguments& args, KeySource keys, ValuePlace values) const;
  void apply_score_shaping(AttentionArguments& args, const ScoreShaping& shaping);
  void apply_lookahead(AttentionArguments& args, Lookahead lookahead);
  /// Positions of a prompt with images, where the model has three axes.
  [[nodiscard]] std::optional<AxisPositions> prompt_positions() const;
  [[nodiscard]] RotaryTable rotary_table(const RopeSpec& rope, std::int64_t width,
                                         std::int64_t positions,
                                         const std::optional<AxisPositions>& prompt) const;
  /// Keys that a pass of some queries sees in its cache, or those of the pass; each covers `rate`
  /// tokens.
  using Keys = std::function<std::int64_t(std::int64_t queries)>;
  [[nodiscard]] Keys keys_so_far(KeySource source, const Expr& keys, std::int64_t rate) const;
  /// Attention in blocks: scores, softmax and context.
  [[nodiscard]] Run blocked_scores(const AttentionScores& op);
  [[nodiscard]] Run blocked_softmax();
  [[nodiscard]] Run blocked_context();
  [[nodiscard]] BlockedAttentionArguments blocked_arguments(const AttentionScores& op);
  /// Attention in blocks with transient global tokens: their sums, biases, scores, softmax and
  /// context.
  [[nodiscard]] TransientGlobalBlocks transient_blocks() const;
  [[nodiscard]] Run transient_sums(const GlobalRows& op);
  [[nodiscard]] Run transient_bias(const RelativeBiasArguments& sizes,
                                   const RelativePositionBias& op);
  [[nodiscard]] TransientGlobalArguments transient_arguments(const AttentionScores& op);
  [[nodiscard]] Run transient_scores(const AttentionScores& op);
  [[nodiscard]] Run transient_softmax();
  [[nodiscard]] Run transient_context();
  /// Attention in chunks with global tokens: scores, softmax and context.
  [[nodiscard]] Run chunk_scores(const AttentionScores& op);
  [[nodiscard]] Run chunk_softmax();
  [[nodiscard]] Run chunk_context();
  /// Tokens with global attention, so many per sequence.
  [[nodiscard]] GlobalPositions global_positions(std::int64_t per_sequence) const;
  /// Operands of attention to a window of tokens and the compressed keys before it (DeepSeek-V4):
  /// gathered anew, and as the last step gathered them.
  struct MixedOperands {
    Arguments gathered;
    Arguments again;
    AttentionArguments largest;  ///< sizes
  };
  [[nodiscard]] bool mixes_keys() const;
  [[nodiscard]] MixedKeys mixed_keys(const AttentionArguments& args,
                                     const ScoreShaping& shaping) const;
  [[nodiscard]] MixedOperands mixed_operands(const AttentionShape& shape,
                                             const ScoreShaping& shaping);
  [[nodiscard]] Run mixed_fused(const FusedAttention& op);
  [[nodiscard]] Run mixed_scores(const AttentionScores& op);
  /// The choice of blocks of keys.
  [[nodiscard]] Run select_blocks(const KeySelect& op);
  /// Fused attention over the keys that an indexer chose.
  [[nodiscard]] Run sparse_fused(const FusedAttention& op);
  using Sinks = std::function<const float*(std::int64_t layer)>;
  /// Attention sinks of a layer's heads; null if the node has none.
  [[nodiscard]] Sinks sinks() const;
  /// Weights of a norm by layer; 1 is added to weights stored as w with 1 + w meant.
  struct NormWeights;
  [[nodiscard]] NormWeights norm_weights(const NormSpec& spec);
  using NormKernel = std::function<void(const NormArguments& norm, const float* x, float* out)>;
  /// Of `width` features; with the ranks' sums of squares, the node's second input, if ranks divide
  /// them.
  [[nodiscard]] NormKernel norm_kernel(const NormSpec& spec, std::int64_t width) const;
  /// The sums over the tensor-parallel ranks, each with `width` features of one of `groups`.
  [[nodiscard]] RowSums row_sums(Integer groups, std::int64_t width) const;
  [[nodiscard]] Run norm_over_positions(const Norm& op);
  [[nodiscard]] Run norm_over_earlier_rows(const Norm& op);
  /// Packed linear layers of the node's first weight, by layer of the stack.
  [[nodiscard]] std::map<std::int64_t, PackedLinear*> linears(std::int64_t expert = 0);
  /// Those of each tap of a convolution, or of each group of its channels.
  [[nodiscard]] std::vector<std::map<std::int64_t, PackedLinear*>> tap_linears(std::int64_t count);
  [[nodiscard]] ConvolutionArguments convolution_sizes(const Convolution& op) const;
  [[nodiscard]] Run grouped_convolution(const Convolution& op);
  [[nodiscard]] const std::uint8_t* key_mask(KeySource keys) const;
  [[nodiscard]] const TokenInputs& tokens() const;
  [[nodiscard]] bool is_tower() const;        ///< of images
  [[nodiscard]] bool is_audio_tower() const;  ///< or its projector
  /// The model that the node belongs to: the whole, or one of its towers.
  [[nodiscard]] const ModelSpec& spec() const;
  /// Images that the node reads: those of the tower, or the sequences of an image model.
  [[nodiscard]] std::vector<ImageSize> images() const;
  /// Their grids of patches.
  [[nodiscard]] std::vector<ImageGrid> grids() const;
  /// Images of a tower, or their windows, as parts of its rows; empty outside.
  [[nodiscard]] std::vector<ImageRows> image_rows(ImageScope scope) const;
  /// Adds the positions of patches to the rows of a tower.
  [[nodiscard]] Run patch_positions(const PositionEmbedding& op);
  /// Returns whether the model's tower reads all tiles of an image at once.
  [[nodiscard]] bool reads_canvases() const;
  /// Tokens of a prompt by the images that they see; empty where all see those of the cache.
  [[nodiscard]] std::vector<ImageRows> rows_of_cross_attention() const;
  /// Tokens before the first image, if the node is the gate of a network behind cross-attention.
  [[nodiscard]] std::vector<std::int64_t> rows_without_images() const;
  struct TileTable;
  [[nodiscard]] TileTable tile_table(const PositionEmbedding& op) const;
  [[nodiscard]] Run tile_positions(const PositionEmbedding& op);
  [[nodiscard]] Run copy_tiles(const PatchRows& op);
  [[nodiscard]] Run join_channels(const PatchRows& op);
  /// Averages consecutive rows of an audio tower.
  [[nodiscard]] Run mean_of_neighbours(const PatchRows& op);
  [[nodiscard]] Run first_of_neighbours(const PatchRows& op);
  [[nodiscard]] Run keep_sound(const PatchRows& op);
  /// A 2-D convolution of whole clips, a segment at a time.
  [[nodiscard]] Run convolve_clips(const GridConvolution& op);
  [[nodiscard]] Run clamp_to_stored(std::int64_t count);
  [[nodiscard]] std::vector<std::int64_t> convolved_sequences(const ShortConvolution& op) const;
  // Collectives of a sharded graph.
  [[nodiscard]] Run all_reduce(Communicator* group);
  [[nodiscard]] Run all_reduce_squares(Communicator* group, const RowSquares& squares);
  [[nodiscard]] Run send_to_experts(Communicator* group);
  [[nodiscard]] Run return_from_experts(Communicator* group);
  /// `run` of the node that is being bound. On the way between tokens and experts of several ranks
  /// it also runs the other rounds of an ExpertExchange.
  [[nodiscard]] Run in_rounds(Run run);
  /// Routed experts that read or write `tensor`, the tokens' side of an all-to-all.
  [[nodiscard]] const Node& experts_beside(TensorId tensor) const;
  /// Order of the selections that the node's experts run on.
  [[nodiscard]] std::shared_ptr<const ExpertPlan> expert_plan() const;
  [[nodiscard]] Run gather_features(Communicator* group);
  [[nodiscard]] Run gather_tokens(Communicator* group);
  /// Plan of routed experts, if the node gathers a routing; else null.
  [[nodiscard]] std::shared_ptr<ExpertPlan> plan_of_all_ranks(std::int64_t ranks);
  [[nodiscard]] Run reduce_scatter(Communicator* group);
  [[nodiscard]] Run send_on(Communicator* group);
  /// Position in the tensor-parallel group; one rank of one outside a sharded run.
  [[nodiscard]] GroupPosition tensor_position() const;
  [[nodiscard]] std::int64_t integer(const Expr& expr) const;
  [[nodiscard]] float* input(std::size_t index) const;
  [[nodiscard]] float* output() const;
  [[nodiscard]] std::int64_t floats_of(TensorId tensor) const;
  [[nodiscard]] const std::string& weight_path(std::size_t index) const;
  /// Scratch of a kernel, which the program counts as allocated.
  [[nodiscard]] std::shared_ptr<AlignedVector<float>> scratch(std::int64_t floats);
  /// Copy of the first input to the output, for operators that modify in place.
  [[nodiscard]] InputCopy input_copy() const;
  [[nodiscard]] bool is_cross_attention() const;
  /// True if K and V stand in the rows of an earlier layer's projections, the node's second input.
  [[nodiscard]] bool reads_earlier_projections() const;
  /// True if the first input has the queries alone, and the second K and V of this pass.
  [[nodiscard]] bool has_queries_alone(const AttentionArguments& args) const;
  /// The indexer's choice, the node's last input: one for all heads, or one per head of the
  /// indexer.
  void use_choice(AttentionArguments& args) const;
  /// Strides of queries alone in their rows, and of K and V in those of an earlier layer.
  void use_earlier_rows(AttentionArguments& args) const;
  /// Keys per sequence that the node's KV-cache (its second input) can store.
  [[nodiscard]] std::int64_t cached_keys() const;
  /// Copies the rows of a norm of heads. Where the output's rows are wider, the heads that the norm
  /// adds to them are copies of the input's last ones (Gemma 4, whose values are keys).
  [[nodiscard]] std::function<void()> head_rows_copy(const HeadRows& heads) const;
  [[nodiscard]] Run activation_with_constants(std::int64_t count);
  [[nodiscard]] Run activation_of_slice(const GatedActivation& op);
  [[nodiscard]] Run attend_step(const StreamStep& op);
  [[nodiscard]] Run update_step(const StreamStep& op);
  [[nodiscard]] Run scaled_residual(const ResidualAdd& op);
  [[nodiscard]] Run scaled_part(const Scale& op);
  /// State of a recurrence in a layer: the cached one, which is its last input, or zeros.
  using State = std::function<float*(std::int64_t layer)>;
  [[nodiscard]] State state_of(KeySource source, const Expr& elements);
  /// Binds the decays of a scan in a layer.
  /// Row `from` of images or sound, and its row `to` among the rank's tokens.
  struct PlacedRow {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  /// `rows` of the whole batch that are tokens of this rank's shard.
  [[nodiscard]] std::vector<PlacedRow> rows_of_shard(const std::vector<std::int64_t>& rows) const;
  /// The first token of this rank's shard of every sequence; 0 unless `length` is a shard's.
  [[nodiscard]] std::int64_t first_token_of_shard(const Expr& length) const;
  /// Of `all` heads, those of a rank are consecutive.
  [[nodiscard]] std::int64_t first_head_of_rank(std::int64_t heads, std::int64_t all) const;
  /// A delta operator of another update than the delta rule.
  Run time_mix_step(const GatedDelta& op);
  using ScanWeights = std::function<void(StateSpaceArguments& args, std::int64_t layer)>;
  [[nodiscard]] ScanWeights scan_weights(const StateSpaceScan& op) const;
  /// Position table of the node, from the row of the first position.
  [[nodiscard]] const float* position_rows(const std::string& path, std::int64_t width) const;

  Program& program_;
  const Block& block_;
  const Node* node_ = nullptr;
  [[nodiscard]] std::int64_t weights_layer(std::int64_t layer) const {
    return layer / block_.layers_per_weights;
  }

  std::shared_ptr<const std::vector<float>> slopes_;  ///< ALiBi slopes of the attention being bound
  std::shared_ptr<const std::vector<KeySpan>> spans_;  ///< of that attention's queries
  std::vector<ImageRows> image_rows_;                  ///< in which that attention stays
  std::map<TensorId, Arguments>
      score_arguments_;  ///< arguments by tensor of scores, for the softmax that reads them
  /// Operands of attention in blocks, and its padded rows, for the operators after its scores.
  struct BlockedOperands {
    BlockedAttentionArguments args;
    std::shared_ptr<AlignedVector<float>> padded;
  };
  std::optional<BlockedOperands> blocked_;
  /// Likewise of attention with transient global tokens, and rows of one block.
  struct TransientOperands {
    TransientGlobalArguments args;
    std::shared_ptr<AlignedVector<float>> rows;
  };
  std::optional<TransientOperands> transient_;
  /// Likewise of attention in chunks, with K and V of the global tokens.
  struct ChunkOperands {
    ChunkArguments args;
    std::shared_ptr<AlignedVector<float>> padded;
    std::shared_ptr<AlignedVector<float>> globals;
  };
  std::optional<ChunkOperands> chunks_;
  std::map<TensorId, std::shared_ptr<ExpertPlan>> plans_;          ///< by tensor of the routing
  std::map<TensorId, std::shared_ptr<ExpertExchange>> exchanges_;  ///< likewise
};

}  // namespace headroom::measured
