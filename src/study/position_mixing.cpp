#include "position_mixing.h"

#include <algorithm>

#include "headroom/complexity.h"
#include "length.h"

namespace headroom {
namespace {

PositionMixing of_kind(MixingKind kind) { return {kind}; }

class MixingVisitor {
 public:
  explicit MixingVisitor(const Graph& graph) : graph_(graph) {}

  // The mask on the scores decides the reach.
  PositionMixing operator()(const AttentionScores& op) const { return windowed(op.shaping.window); }
  PositionMixing operator()(const AttentionContext&) const {
    return of_kind(MixingKind::auxiliary);
  }
  PositionMixing operator()(const IndexScores&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const KeySelect&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const PoolTokens&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const KeyCompression&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const DisentangledBias&) const {
    return of_kind(MixingKind::auxiliary);
  }
  PositionMixing operator()(const TransformerXlBias&) const {
    return of_kind(MixingKind::auxiliary);
  }
  PositionMixing operator()(const GatedPositionBias&) const {
    return of_kind(MixingKind::auxiliary);
  }
  PositionMixing operator()(const LocalAttention& op) const {
    return neighbourhood(op.earlier - 1, op.earlier, 1);
  }
  PositionMixing operator()(const Softmax&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const GlobalRows&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const FeatureMap&) const { return of_kind(MixingKind::auxiliary); }
  PositionMixing operator()(const FusedAttention& op) const { return windowed(op.shaping.window); }
  PositionMixing operator()(const LinearAttention& op) const {
    if (op.masking == Masking::none) return of_kind(MixingKind::all);
    return running(MixingKind::state);
  }
  PositionMixing operator()(const StateSpaceScan&) const { return running(MixingKind::recurrence); }
  PositionMixing operator()(const GatedDelta&) const { return running(MixingKind::recurrence); }
  PositionMixing operator()(const GatedLinearRecurrence&) const {
    return running(MixingKind::recurrence);
  }
  PositionMixing operator()(const WeightedKeyValue&) const {
    return running(MixingKind::recurrence);
  }
  PositionMixing operator()(const TokenShift&) const { return neighbourhood(1, 2, 1); }
  PositionMixing operator()(const Recurrence& op) const {
    PositionMixing mixing = running(MixingKind::recurrence);
    mixing.sequential = op.seq_len;
    return mixing;
  }
  PositionMixing operator()(const Convolution& op) const {
    const std::int64_t kernel = value(op.kernel);
    const std::int64_t dilation = value(op.dilation);
    const bool causal = op.masking == Masking::causal;
    return neighbourhood((causal ? kernel - 1 : kernel / 2) * dilation, kernel, dilation);
  }
  PositionMixing operator()(const ShortConvolution& op) const {
    const std::int64_t kernel = value(op.kernel);
    return neighbourhood(kernel - 1, kernel, 1);
  }

  // Position-wise operators.
  PositionMixing operator()(const TokenEmbedding&) const { return {}; }
  PositionMixing operator()(const PositionEmbedding&) const { return {}; }
  PositionMixing operator()(const PatchEmbedding&) const { return {}; }
  PositionMixing operator()(const PatchRows&) const { return {}; }
  PositionMixing operator()(const VisualTokens&) const { return {}; }
  PositionMixing operator()(const GridConvolution&) const { return {}; }
  PositionMixing operator()(const RelativePositionBias&) const { return {}; }
  PositionMixing operator()(const PositionTableRows&) const { return {}; }
  PositionMixing operator()(const RelativeSinusoids&) const { return {}; }
  PositionMixing operator()(const Linear&) const { return {}; }
  PositionMixing operator()(const Norm&) const { return {}; }
  PositionMixing operator()(const HeadNorm&) const { return {}; }
  PositionMixing operator()(const Rotary&) const { return {}; }
  PositionMixing operator()(const Clamp&) const { return {}; }
  PositionMixing operator()(const TemperatureScale&) const { return {}; }
  PositionMixing operator()(const LatentConcat&) const { return {}; }
  PositionMixing operator()(const HeadLinear&) const { return {}; }
  PositionMixing operator()(const GroupedLinear&) const { return {}; }
  PositionMixing operator()(const StreamWeights&) const { return {}; }
  PositionMixing operator()(const StreamStep&) const { return {}; }
  PositionMixing operator()(const KvCacheAppend&) const { return {}; }
  PositionMixing operator()(const TokenMix&) const { return {}; }
  PositionMixing operator()(const ValueBonus&) const { return {}; }
  PositionMixing operator()(const Concatenate&) const { return {}; }
  PositionMixing operator()(const OutputGate&) const { return {}; }
  PositionMixing operator()(const Activation&) const { return {}; }
  PositionMixing operator()(const GatedActivation&) const { return {}; }
  PositionMixing operator()(const RouterSelect&) const { return {}; }
  PositionMixing operator()(const ExpertLinear&) const { return {}; }
  PositionMixing operator()(const ExpertCombine&) const { return {}; }
  PositionMixing operator()(const RowGate&) const { return {}; }
  PositionMixing operator()(const ResidualAdd&) const { return {}; }
  PositionMixing operator()(const Dropout&) const { return {}; }
  PositionMixing operator()(const ChannelScale&) const { return {}; }
  PositionMixing operator()(const SelectToken&) const { return {}; }
  PositionMixing operator()(const UnitLength&) const { return {}; }
  PositionMixing operator()(const RepeatedRow&) const { return {}; }
  PositionMixing operator()(const SimilarityLogits&) const { return {}; }
  PositionMixing operator()(const Scale&) const { return {}; }
  PositionMixing operator()(const AltUpStep&) const { return {}; }
  PositionMixing operator()(const TrainedScale&) const { return {}; }
  PositionMixing operator()(const TimestepFeatures&) const { return {}; }
  PositionMixing operator()(const TrainedShift&) const { return {}; }
  PositionMixing operator()(const Modulation&) const { return {}; }
  PositionMixing operator()(const SequenceRows&) const { return {}; }
  PositionMixing operator()(const SoftCap&) const { return {}; }
  PositionMixing operator()(const CrossEntropy&) const { return {}; }
  PositionMixing operator()(const Collective&) const { return {}; }

 private:
  [[nodiscard]] std::int64_t value(const Expr& size) const {
    return size.evaluate_int64(graph_.sizes);
  }

  static PositionMixing neighbourhood(std::int64_t reach, std::int64_t neighbours,
                                      std::int64_t dilation) {
    PositionMixing mixing = of_kind(MixingKind::neighbourhood);
    mixing.reach = reach;
    mixing.neighbours = neighbours;
    mixing.dilation = dilation;
    return mixing;
  }

  static PositionMixing windowed(const WindowSpec& window) {
    switch (window.kind) {
      case WindowKind::none:
        return of_kind(MixingKind::all);
      case WindowKind::sliding:
      case WindowKind::chunked:
        break;
      case WindowKind::centred:
        return neighbourhood(window.size, 2 * window.size + 1, 1);
    }
    return neighbourhood(window.size - 1, window.size, 1);
  }

  /// One dependent step per position.
  static PositionMixing running(MixingKind kind) {
    PositionMixing mixing = of_kind(kind);
    mixing.sequential = Symbol::seq_len;
    return mixing;
  }

  const Graph& graph_;
};

/// Rank of mixing kinds: those whose paths connect more positions, then shorter paths, rank higher.
/// A recurrence carries the whole past, a stack of neighbourhoods only its receptive field.
int rank_of(MixingKind kind) {
  switch (kind) {
    case MixingKind::none:
    case MixingKind::auxiliary:
      return 0;
    case MixingKind::neighbourhood:
      return 1;
    case MixingKind::recurrence:
      return 2;
    case MixingKind::all:
    case MixingKind::state:
      break;
  }
  return 3;
}

/// The farthest-reaching mixing of each layer, in execution order.
std::vector<PositionMixing> mixing_by_layer(const Graph& graph) {
  std::vector<PositionMixing> result;
  for (const Block& block : graph.blocks) {
    const auto repeat = block.repeat.evaluate_int64(graph.sizes);
    const std::int64_t layers = std::max<std::int64_t>(1, block.layers_per_run);
    std::vector<PositionMixing> run(static_cast<std::size_t>(layers));
    for (const Node& node : block.nodes) {
      const PositionMixing mixing = position_mixing(node.op, graph);
      PositionMixing& best = run[static_cast<std::size_t>(node.layer)];
      if (rank_of(mixing.kind) > rank_of(best.kind)) best = mixing;
    }
    for (std::int64_t i = 0; i < repeat; ++i) result.insert(result.end(), run.begin(), run.end());
  }
  return result;
}

/// Common ratio of the dilations from layer to layer; 1 if they are not geometric.
std::int64_t dilation_factor(const std::vector<std::int64_t>& dilations) {
  std::int64_t factor = 1;
  for (std::size_t i = 1; i < dilations.size(); ++i) {
    const std::int64_t here = dilations[i] / dilations[i - 1];
    const bool same = dilations[i] % dilations[i - 1] == 0 && (i == 1 || here == factor);
    if (!same) return 1;
    factor = here;
  }
  return factor;
}

/// Letter of a neighbourhood's size: κ of convolutions, w of attention.
std::string_view letter_of(const Graph& graph) {
  const bool windowed = graph.traits.window.kind != WindowKind::none;
  return info(windowed ? Symbol::sliding_window : Symbol::kernel_size).unicode;
}

/// "O(…)" of a number of steps in terms of the length.
std::string order_of(const std::string& steps) { return "O(" + steps + ")"; }

PathLength by_neighbourhoods(const std::vector<PositionMixing>& layers, const Graph& graph) {
  PathLength path;
  std::vector<std::int64_t> dilations;
  std::int64_t field = 1;
  for (const PositionMixing& layer : layers) {
    if (layer.kind != MixingKind::neighbourhood) continue;
    path.neighbours = layer.neighbours;
    dilations.push_back(layer.dilation);
    path.reaches.push_back(layer.reach);
    field += (layer.neighbours - 1) * layer.dilation;
  }
  path.receptive_field = field;
  path.dilation_factor = dilation_factor(dilations);
  const std::string letter(letter_of(graph));
  if (path.dilation_factor == 1) {
    path.growth = PathGrowth::by_reach;
    path.order = order_of(format(kLength) + "/" + letter);
    return path;
  }
  path.growth = PathGrowth::logarithmic;
  const bool by_kernel = path.dilation_factor == path.neighbours;
  const std::string base = by_kernel ? letter : std::to_string(path.dilation_factor);
  path.order = order_of("log_" + base + "(" + format(kLength) + ")");
  return path;
}

/// Analyses of the nodes whose operator satisfies `chosen`, in execution order.
template <class Chosen>
std::vector<const NodeAnalysis*> nodes_where(const Graph& graph, const Analysis& analysis,
                                             const Chosen& chosen) {
  std::vector<const NodeAnalysis*> nodes;
  std::size_t next = 0;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      const NodeAnalysis& cost = analysis.nodes.at(next++);
      if (chosen(node.op)) nodes.push_back(&cost);
    }
  }
  return nodes;
}

template <class... Ops>
bool is_any_of(const Op& op) {
  return (std::holds_alternative<Ops>(op) || ...);
}

/// Recurrences and convolutions.
bool mixes_without_attention(const Op& op) {
  return is_any_of<StateSpaceScan, GatedDelta, GatedLinearRecurrence, WeightedKeyValue, TokenShift,
                   Recurrence, Convolution, ShortConvolution>(op);
}

}  // namespace

PositionMixing position_mixing(const Op& op, const Graph& graph) {
  return std::visit(MixingVisitor(graph), op);
}

bool is_of_mixing(const PositionMixing& mixing) noexcept { return mixing.kind != MixingKind::none; }

std::vector<const NodeAnalysis*> mixing_nodes(const Graph& graph, const Analysis& analysis) {
  return nodes_where(graph, analysis,
                     [&](const Op& op) { return is_of_mixing(position_mixing(op, graph)); });
}

std::vector<const NodeAnalysis*> attention_nodes(const Graph& graph, const Analysis& analysis) {
  return nodes_where(graph, analysis, [&](const Op& op) {
    return is_of_mixing(position_mixing(op, graph)) && !mixes_without_attention(op);
  });
}

Cost mixing_cost(const Graph& graph, const Analysis& analysis) {
  Cost sum;
  for (const NodeAnalysis* node : mixing_nodes(graph, analysis)) sum += node->cost.forward;
  return sum;
}

PathLength path_length(const Graph& graph) {
  const std::vector<PositionMixing> layers = mixing_by_layer(graph);
  const auto best = std::ranges::max_element(
      layers, {}, [](const PositionMixing& layer) { return rank_of(layer.kind); });
  PathLength path;
  path.order = "–";
  if (best == layers.end()) return path;
  switch (best->kind) {
    case MixingKind::none:
    case MixingKind::auxiliary:
      path.receptive_field = 1;
      return path;
    case MixingKind::all:
    case MixingKind::state:
      path.growth = PathGrowth::constant;
      path.order = "O(1)";
      return path;
    case MixingKind::neighbourhood:
      return by_neighbourhoods(layers, graph);
    case MixingKind::recurrence:
      break;
  }
  path.growth = PathGrowth::linear;
  path.order = order_of(format(kLength));
  return path;
}

std::optional<std::int64_t> steps_between_ends(const PathLength& path, std::int64_t length) {
  switch (path.growth) {
    case PathGrowth::never:
      return length == 1 ? std::optional<std::int64_t>(0) : std::nullopt;
    case PathGrowth::constant:
      return 1;
    case PathGrowth::linear:
      return length;
    case PathGrowth::by_reach:
    case PathGrowth::logarithmic:
      break;
  }
  std::int64_t covered = 1;
  std::int64_t steps = 0;
  std::int64_t reach = 0;
  for (; covered < length; ++steps, covered += reach) {
    const auto layer = static_cast<std::size_t>(steps);
    const bool given = layer < path.reaches.size();
    reach = given ? path.reaches[layer] : reach * path.dilation_factor;
    if (reach == 0) return std::nullopt;
  }
  return steps;
}

Expr sequential_operations(const Graph& graph) {
  Expr steps;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      steps += block.repeat * position_mixing(node.op, graph).sequential;
    }
  }
  return steps;
}

}  // namespace headroom
