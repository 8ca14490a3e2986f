#include "op_kind.h"

#include <algorithm>

#include "visit.h"

namespace headroom::detail {

OpKind kind_of(const Op& op) {
  return std::visit(
      Overloaded{
          [](const TokenEmbedding&) { return OpKind::word_embedding; },
          [](const OneOf<RelativePositionBias, PositionTableRows, RelativeSinusoids> auto&) {
            return OpKind::relative_position_bias;
          },
          [](const Linear&) { return OpKind::linear; },
          [](const ExpertLinear&) { return OpKind::expert_linear; },
          [](const ExpertCombine&) { return OpKind::expert_combine; },
          [](const OneOf<DisentangledBias, TransformerXlBias, GatedPositionBias, AttentionScores,
                         Softmax, AttentionContext> auto&) { return OpKind::eager_attention; },
          [](const FusedAttention&) { return OpKind::fused_attention; },
          [](const OneOf<LinearAttention, LocalAttention, GatedDelta, GatedLinearRecurrence,
                         StateSpaceScan, WeightedKeyValue> auto&) {
            return OpKind::linear_attention;
          },
          [](const OneOf<IndexScores, KeySelect, PoolTokens> auto&) { return OpKind::indexer; },
          [](const OneOf<Activation, GatedActivation> auto&) { return OpKind::activation; },
          [](const CrossEntropy&) { return OpKind::loss; },
          [](const Collective&) { return OpKind::collective; },
          [](const OneOf<PositionEmbedding, PatchEmbedding, PatchRows, VisualTokens, Convolution,
                         GridConvolution, Norm, HeadNorm, Rotary, Clamp, TemperatureScale,
                         LatentConcat, HeadLinear, GroupedLinear, KeyCompression, StreamWeights,
                         StreamStep, KvCacheAppend, GlobalRows, FeatureMap, ShortConvolution,
                         TokenShift, TokenMix, ValueBonus, Concatenate, Recurrence, OutputGate,
                         RouterSelect, RowGate, ResidualAdd, ChannelScale, Dropout, SelectToken,
                         UnitLength, RepeatedRow, SimilarityLogits, Scale, AltUpStep, TrainedScale,
                         TimestepFeatures, TrainedShift, Modulation, SequenceRows, SoftCap> auto&) {
            return OpKind::other;
          }},
      op);
}

bool has_kind(const Graph& graph, OpKind kind) {
  return std::ranges::any_of(graph.blocks, [&](const Block& block) {
    return std::ranges::any_of(block.nodes,
                               [&](const Node& node) { return kind_of(node.op) == kind; });
  });
}

}  // namespace headroom::detail
