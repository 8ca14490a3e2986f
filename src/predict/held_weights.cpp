// Bytes of weights as the measured module's ModelWeights packs them;
// tests/measured/test_prediction.cpp compares the two.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "headroom/predict.h"
#include "headroom/storage.h"
#include "rank_graph.h"
#include "row_policy.h"
#include "stored_reading.h"
#include "visit.h"
#include "working_memory.h"

namespace headroom {
namespace {

/// A way in which operators read a weight.
enum class Reading {
  packed,      ///< by a GEMM, packed for the rows of a pass
  recurrent,   ///< by the steps of a recurrence, packed for few rows only
  word_table,  ///< by looking up rows
  plain,       ///< as loaded
};

/// The way in which `node` reads its weight number `index`.
Reading reading_of(const Node& node, std::size_t index) {
  return std::visit(
      Overloaded{
          [](const OneOf<Linear, ExpertLinear, GroupedLinear, GridConvolution> auto&) {
            return Reading::packed;
          },
          // After weight and bias: the lengths of taps; the table of positions.
          [&](const OneOf<Convolution, PatchEmbedding> auto& op) {
            const std::size_t packed = op.bias ? 2 : 1;
            return index < packed ? Reading::packed : Reading::plain;
          },
          [](const Recurrence&) { return Reading::recurrent; },
          [&](const TokenEmbedding&) { return index == 0 ? Reading::word_table : Reading::plain; },
          [](const OneOf<
              PositionEmbedding, PatchRows, VisualTokens, RelativePositionBias, PositionTableRows,
              DisentangledBias, RelativeSinusoids, TransformerXlBias, GatedPositionBias,
              LocalAttention, Norm, HeadNorm, Rotary, Clamp, TemperatureScale, LatentConcat,
              HeadLinear, KeyCompression, IndexScores, KeySelect, PoolTokens, StreamWeights,
              StreamStep, KvCacheAppend, AttentionScores, Softmax, AttentionContext, FusedAttention,
              GlobalRows, FeatureMap, LinearAttention, ShortConvolution, StateSpaceScan, GatedDelta,
              GatedLinearRecurrence, TokenShift, TokenMix, ValueBonus, WeightedKeyValue,
              Concatenate, OutputGate, Activation, GatedActivation, RouterSelect, ExpertCombine,
              RowGate, ResidualAdd, ChannelScale, Dropout, SelectToken, UnitLength, RepeatedRow,
              SimilarityLogits, Scale, AltUpStep, TrainedScale, TimestepFeatures, TrainedShift,
              Modulation, SequenceRows, SoftCap, CrossEntropy, Collective> auto&) {
            return Reading::plain;
          }},
      node.op);
}

/// All ways in which the operators of a graph read a weight.
struct Readings {
  bool packed = false;
  bool packed_by_head = false;
  bool recurrent = false;
  bool word_table = false;
  bool plain = false;

  void add(Reading reading) {
    packed = packed || reading == Reading::packed;
    recurrent = recurrent || reading == Reading::recurrent;
    word_table = word_table || reading == Reading::word_table;
    plain = plain || reading == Reading::plain;
  }
};

/// By weight; those of `plain` paths are also read as loaded.
std::vector<Readings> readings_of(const Graph& graph, const std::set<std::string>& plain) {
  std::vector<Readings> readings(graph.weights.size());
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    readings[i].plain = plain.contains(graph.weights[i].path);
  }
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      for (std::size_t i = 0; i < node.weights.size(); ++i) {
        const Reading reading = reading_of(node, i);
        Readings& all = readings[node.weights[i]];
        all.add(reading);
        if (reading == Reading::packed && node.component.part == Part::head) {
          all.packed_by_head = true;
        }
      }
    }
  }
  return readings;
}

/// Bytes of one element over all its copies. A GEMM stores weights once for any number of rows, its
/// bias in float32. Weights that no GEMM reads stay in float32, except word tables, which shrink to
/// their storage type. A word table that a GEMM also reads needs no copy if the packed layout can
/// return its rows: that of float32 weights for many rows alone may not.
Integer bytes_of_element(const Weight& weight, const Readings& readings, const Workload& workload,
                         const TimeRequest& request) {
  const detail::RowPolicy rows = readings.packed_by_head
                                     ? detail::head_row_policy(workload, request)
                                     : detail::row_policy(workload, request);
  const Integer stored = has_narrow_weights(workload) ? 2 : detail::kFloat32Bytes;
  const bool is_bias = weight.path.ends_with(".bias");
  if (readings.recurrent) return is_bias ? detail::kFloat32Bytes : stored;
  if (!readings.packed) return readings.word_table ? stored : detail::kFloat32Bytes;
  const bool is_opaque = request.opaque_layout && !rows.few && !has_narrow_weights(workload);
  const Integer table = readings.word_table && is_opaque ? detail::kFloat32Bytes : 0;
  const Integer unpacked = readings.plain ? detail::kFloat32Bytes : 0;
  return (is_bias ? detail::kFloat32Bytes : stored) + table + unpacked;
}

}  // namespace

namespace detail {

namespace {

/// One copy of a weight.
struct LoadedCopy {
  Integer elements = 0;
  Integer held_bytes = 0;
  Integer read_bytes = 0;  ///< float32 values that return to the system as it is packed or narrowed
};

/// The weights of a run, as they are loaded and held.
class LoadedWeights {
 public:
  LoadedWeights(const ModelSpec& spec, const Workload& workload, const TimeRequest& request,
                const RankPart* part)
      : graph_(graph_of(build_graph(spec, all_parts()), part)),
        stored_(part == nullptr && request.computes_in_float32
                    ? stored_reading(spec, graph_, workload)
                    : std::nullopt) {
    const std::vector<Readings> readings = readings_of(graph_, absorbed_weights(spec));
    for (std::size_t i = 0; i < graph_.weights.size(); ++i) {
      plain_.push_back(plain_copy(graph_.weights[i], readings[i], workload, request));
    }
  }
  LoadedWeights(const LoadedWeights&) = delete;
  LoadedWeights& operator=(const LoadedWeights&) = delete;
  LoadedWeights(LoadedWeights&&) = delete;
  LoadedWeights& operator=(LoadedWeights&&) = delete;
  ~LoadedWeights() = default;

  [[nodiscard]] Integer held() const {
    Integer sum = stored_ ? stored_->all_copies().bytes : 0;
    for (std::size_t i = 0; i < graph_.weights.size(); ++i) {
      Integer copies = graph_.weights[i].repeat.evaluate(graph_.sizes);
      if (stored_) copies -= stored_->copies_of(static_cast<WeightId>(i));
      sum = checked_add(sum, checked_multiply(copies, plain_[i].held_bytes));
    }
    return sum;
  }

  /// The most that is held at once while the nodes' weights are loaded, the largest first.
  [[nodiscard]] Integer load_peak() const {
    std::vector<LoadedCopy> nodes = loaded_nodes();
    std::ranges::stable_sort(nodes, std::ranges::greater{}, &LoadedCopy::elements);
    Integer held = 0;
    Integer peak = 0;
    for (const LoadedCopy& node : nodes) {
      peak = std::max(peak, checked_add(held, std::max(node.held_bytes, node.read_bytes)));
      held = checked_add(held, node.held_bytes);
    }
    return peak;
  }

 private:
  using Places = std::set<std::pair<std::string, std::int64_t>>;  ///< by path and layer

  [[nodiscard]] LoadedCopy plain_copy(const Weight& weight, const Readings& readings,
                                      const Workload& workload, const TimeRequest& request) const {
    const Integer elements = weight.elements().evaluate(graph_.sizes);
    const bool is_converted = readings.packed || readings.recurrent ||
                              (readings.word_table && has_narrow_weights(workload));
    const Integer one = bytes_of_element(weight, readings, workload, request);
    return {elements, checked_multiply(one, elements),
            is_converted ? checked_multiply(kFloat32Bytes, elements) : 0};
  }

  /// All weights of each node and layer together, but for those that a node before has loaded.
  [[nodiscard]] std::vector<LoadedCopy> loaded_nodes() const {
    std::vector<LoadedCopy> nodes;
    Places loaded;
    for (const Block& block : graph_.blocks) {
      const std::int64_t runs = block.repeat.evaluate_int64(graph_.sizes);
      for (const Node& node : block.nodes) {
        if (node.weights.empty()) continue;
        for (std::int64_t run = 0; run < runs; ++run) {
          nodes.push_back(loaded_by(node, block.weights_of(node, run), loaded));
        }
      }
    }
    return nodes;
  }

  [[nodiscard]] LoadedCopy loaded_by(const Node& node, std::int64_t layer, Places& loaded) const {
    LoadedCopy all;
    for (const WeightId id : node.weights) {
      const LoadedCopy& plain = plain_[id];
      all.elements = checked_add(all.elements, plain.elements);
      if (!loaded.insert({graph_.weights[id].path, layer}).second) continue;
      const auto stored = stored_ ? stored_->bytes_of(graph_.weights[id], layer) : std::nullopt;
      all.held_bytes = checked_add(all.held_bytes, stored.value_or(plain.held_bytes));
      all.read_bytes = checked_add(all.read_bytes, stored.value_or(plain.read_bytes));
    }
    return all;
  }

  Graph graph_;
  std::optional<StoredReading> stored_;  ///< refers to `graph_`
  std::vector<LoadedCopy> plain_;        ///< by weight
};

}  // namespace

Integer held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                          const TimeRequest& request, const RankPart* part) {
  return LoadedWeights(spec, workload, request, part).held();
}

Integer load_peak_bytes(const ModelSpec& spec, const Workload& workload,
                        const TimeRequest& request) {
  return LoadedWeights(spec, workload, request, nullptr).load_peak();
}

}  // namespace detail

bool has_narrow_weights(const Workload& workload) noexcept {
  return workload.weights == WeightForm(WeightType::bfloat16);
}

Integer predict_held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                                  const TimeRequest& request) {
  return detail::held_weight_bytes(spec, workload, request, nullptr);
}

}  // namespace headroom
