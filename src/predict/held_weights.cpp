// Bytes of weights as the measured module's ModelWeights packs them;
// tests/measured/test_prediction.cpp compares the two.
#include <algorithm>
#include <functional>

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
          [](const OneOf<Linear, ExpertLinear, GridConvolution> auto&) { return Reading::packed; },
          // After weight and bias: the lengths of taps; the table of positions.
          [&](const OneOf<Convolution, PatchEmbedding> auto& op) {
            const std::size_t packed = op.bias ? 2 : 1;
            return index < packed ? Reading::packed : Reading::plain;
          },
          [](const Recurrence&) { return Reading::recurrent; },
          [&](const TokenEmbedding&) { return index == 0 ? Reading::word_table : Reading::plain; },
          [](const OneOf<
              PositionEmbedding, PatchRows, VisualTokens, RelativePositionBias, PositionTableRows,
              DisentangledBias, RelativeSinusoids, TransformerXlBias, Norm, HeadNorm, Rotary, Clamp,
              TemperatureScale, LatentConcat, HeadLinear, GroupedLinear, KeyCompression,
              IndexScores, KeySelect, StreamWeights, StreamStep, KvCacheAppend, AttentionScores,
              Softmax, AttentionContext, FusedAttention, GlobalRows, FeatureMap, LinearAttention,
              ShortConvolution, StateSpaceScan, GatedDelta, GatedLinearRecurrence, TokenShift,
              TokenMix, ValueBonus, WeightedKeyValue, Concatenate, OutputGate, Activation,
              GatedActivation, RouterSelect, ExpertCombine, RowGate, ResidualAdd, ChannelScale,
              Dropout, SelectToken, UnitLength, RepeatedRow, SimilarityLogits, Scale, AltUpStep,
              TrainedScale, TimestepFeatures, TrainedShift, Modulation, SequenceRows, SoftCap,
              CrossEntropy, Collective> auto&) { return Reading::plain; }},
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

/// By weight.
std::vector<Readings> readings_of(const Graph& graph) {
  std::vector<Readings> readings(graph.weights.size());
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

/// Bytes of one element over all its copies. A GEMM stores weights once for few rows, in their
/// storage type, and once for many, in float32; biases are always float32. Weights that no GEMM
/// reads stay in float32, except word tables, which shrink to their storage type. A word table that
/// a GEMM also reads needs no copy if a packed layout can return its rows: the layout for few rows
/// can, the one for many may not.
Integer bytes_of_element(const Weight& weight, const Readings& readings, const Workload& workload,
                         const TimeRequest& request) {
  const detail::RowPolicy rows = readings.packed_by_head
                                     ? detail::head_row_policy(workload, request)
                                     : detail::row_policy(workload, request);
  const Integer stored = has_narrow_weights(workload) ? 2 : detail::kFloat32Bytes;
  const bool is_bias = weight.path.ends_with(".bias");
  if (readings.recurrent) return is_bias ? detail::kFloat32Bytes : stored;
  if (!readings.packed) return readings.word_table ? stored : detail::kFloat32Bytes;
  const Integer few = rows.few ? (is_bias ? detail::kFloat32Bytes : stored) : 0;
  const Integer many = rows.many ? detail::kFloat32Bytes : 0;
  const bool returns_rows = rows.few || !request.opaque_layout;
  const Integer table = readings.word_table && !returns_rows ? detail::kFloat32Bytes : 0;
  const Integer unpacked = readings.plain ? detail::kFloat32Bytes : 0;
  return few + many + table + unpacked;
}

}  // namespace

namespace detail {

namespace {

/// One copy of a weight: as it is read, and as it is held.
struct LoadedCopy {
  Integer elements = 0;
  Integer read_bytes = 0;  ///< besides those held, until a GEMM's weights are packed
  Integer held_bytes = 0;
};

/// All copies of the weights of a run.
class LoadedWeights {
 public:
  LoadedWeights(const Graph& graph, const Workload& workload, const TimeRequest& request,
                const StoredReading* stored) {
    const std::vector<Readings> readings = readings_of(graph);
    for (std::size_t i = 0; i < graph.weights.size(); ++i) {
      const Weight& weight = graph.weights[i];
      Integer copies = weight.repeat.evaluate(graph.sizes);
      const Integer elements = weight.elements().evaluate(graph.sizes);
      if (stored != nullptr) {
        for (const auto& copy : stored->copies_of(static_cast<WeightId>(i))) {
          groups_.push_back({{copy.elements, copy.bytes, copy.bytes}, 1});
          --copies;
        }
      }
      const Integer one = bytes_of_element(weight, readings[i], workload, request);
      const bool is_packed = readings[i].packed || readings[i].recurrent;
      groups_.push_back({{elements, is_packed ? checked_multiply(kFloat32Bytes, elements) : 0,
                          checked_multiply(one, elements)},
                         copies});
    }
  }

  [[nodiscard]] Integer held() const {
    Integer sum = 0;
    for (const Group& group : groups_) sum = checked_add(sum, group.held());
    return sum;
  }

  /// The most that is held at once while the weights are loaded, the largest first. The first of
  /// equal copies may exceed those after it only by what is held before it.
  [[nodiscard]] Integer load_peak() const {
    std::vector<Group> sorted = groups_;
    std::ranges::stable_sort(sorted, std::ranges::greater{},
                             [](const Group& group) { return group.copy.elements; });
    Integer held = 0;
    Integer peak = 0;
    for (const Group& group : sorted) {
      held = checked_add(held, group.held());
      if (group.copies > 0) peak = std::max(peak, checked_add(held, group.copy.read_bytes));
    }
    return peak;
  }

 private:
  /// Equal copies.
  struct Group {
    LoadedCopy copy;
    Integer copies = 1;
    [[nodiscard]] Integer held() const { return checked_multiply(copies, copy.held_bytes); }
  };

  std::vector<Group> groups_;
};

LoadedWeights loaded_weights(const ModelSpec& spec, const Workload& workload,
                             const TimeRequest& request, const RankPart* part) {
  const Graph graph = graph_of(build_graph(spec, all_parts()), part);
  const auto stored = part == nullptr ? stored_reading(spec, graph, workload) : std::nullopt;
  return {graph, workload, request, stored ? &*stored : nullptr};
}

}  // namespace

Integer held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                          const TimeRequest& request, const RankPart* part) {
  return loaded_weights(spec, workload, request, part).held();
}

Integer load_peak_bytes(const ModelSpec& spec, const Workload& workload,
                        const TimeRequest& request) {
  return loaded_weights(spec, workload, request, nullptr).load_peak();
}

}  // namespace detail

bool has_narrow_weights(const Workload& workload) noexcept {
  return workload.weights == WeightType::bfloat16;
}

Integer predict_held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                                  const TimeRequest& request) {
  return detail::held_weight_bytes(spec, workload, request, nullptr);
}

}  // namespace headroom
