// The attention core, operator by operator.
#include "headroom/graph.h"

namespace headroom {
namespace {

struct AttentionCoreVisitor {
  Part part;

  bool operator()(const AttentionScores&) const { return true; }
  bool operator()(const Softmax&) const { return true; }
  bool operator()(const AttentionContext&) const { return true; }
  bool operator()(const Dropout&) const {
    return part == Part::attention_softmax || part == Part::cross_attention_softmax;
  }

  bool operator()(const TokenEmbedding&) const { return false; }
  bool operator()(const PositionEmbedding&) const { return false; }
  bool operator()(const PatchEmbedding&) const { return false; }
  bool operator()(const PatchRows&) const { return false; }
  bool operator()(const VisualTokens&) const { return false; }
  bool operator()(const Convolution&) const { return false; }
  bool operator()(const GridConvolution&) const { return false; }
  bool operator()(const RelativePositionBias&) const { return false; }
  bool operator()(const PositionTableRows&) const { return false; }
  bool operator()(const DisentangledBias&) const { return true; }
  bool operator()(const RelativeSinusoids&) const { return false; }
  bool operator()(const TransformerXlBias&) const { return true; }
  bool operator()(const GatedPositionBias&) const { return true; }
  bool operator()(const LocalAttention&) const { return false; }
  bool operator()(const Linear&) const { return false; }
  bool operator()(const Norm&) const { return false; }
  bool operator()(const HeadNorm&) const { return false; }
  bool operator()(const Rotary&) const { return false; }
  bool operator()(const Clamp&) const { return false; }
  bool operator()(const TemperatureScale&) const { return false; }
  bool operator()(const LatentConcat&) const { return false; }
  bool operator()(const HeadLinear&) const { return false; }
  bool operator()(const GroupedLinear&) const { return false; }
  bool operator()(const KeyCompression&) const { return false; }
  bool operator()(const IndexScores&) const { return false; }
  bool operator()(const KeySelect&) const { return false; }
  bool operator()(const PoolTokens&) const { return false; }
  bool operator()(const StreamWeights&) const { return false; }
  bool operator()(const StreamStep&) const { return false; }
  bool operator()(const KvCacheAppend&) const { return false; }
  bool operator()(const FusedAttention&) const { return false; }
  bool operator()(const GlobalRows&) const { return false; }
  bool operator()(const FeatureMap&) const { return false; }
  bool operator()(const LinearAttention&) const { return false; }
  bool operator()(const ShortConvolution&) const { return false; }
  bool operator()(const StateSpaceScan&) const { return false; }
  bool operator()(const GatedDelta&) const { return false; }
  bool operator()(const GatedLinearRecurrence&) const { return false; }
  bool operator()(const TokenShift&) const { return false; }
  bool operator()(const TokenMix&) const { return false; }
  bool operator()(const ValueBonus&) const { return false; }
  bool operator()(const WeightedKeyValue&) const { return false; }
  bool operator()(const Concatenate&) const { return false; }
  bool operator()(const Recurrence&) const { return false; }
  bool operator()(const OutputGate&) const { return false; }
  bool operator()(const Activation&) const { return false; }
  bool operator()(const GatedActivation&) const { return false; }
  bool operator()(const RouterSelect&) const { return false; }
  bool operator()(const ExpertLinear&) const { return false; }
  bool operator()(const ExpertCombine&) const { return false; }
  bool operator()(const RowGate&) const { return false; }
  bool operator()(const ResidualAdd&) const { return false; }
  bool operator()(const ChannelScale&) const { return false; }
  bool operator()(const SelectToken&) const { return false; }
  bool operator()(const UnitLength&) const { return false; }
  bool operator()(const RepeatedRow&) const { return false; }
  bool operator()(const SimilarityLogits&) const { return false; }
  bool operator()(const Scale&) const { return false; }
  bool operator()(const AltUpStep&) const { return false; }
  bool operator()(const TrainedScale&) const { return false; }
  bool operator()(const TimestepFeatures&) const { return false; }
  bool operator()(const TrainedShift&) const { return false; }
  bool operator()(const Modulation&) const { return false; }
  bool operator()(const SequenceRows&) const { return false; }
  bool operator()(const SoftCap&) const { return false; }
  bool operator()(const CrossEntropy&) const { return false; }
  bool operator()(const Collective&) const { return false; }
};

}  // namespace

bool in_attention_core(const Node& node) {
  return std::visit(AttentionCoreVisitor{node.component.part}, node.op);
}

}  // namespace headroom
