// The graph of one stage of a pipeline.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph_passes.h"
#include "stage_layout.h"

namespace headroom::detail {
namespace {

std::set<WeightId> used_weights(const Graph& graph) {
  std::set<WeightId> used;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) used.insert(node.weights.begin(), node.weights.end());
  }
  return used;
}

/// Keeps only `kept` of the weights, which are those that some node uses and perhaps others.
void keep_weights(Graph& graph, const std::set<WeightId>& kept) {
  std::map<WeightId, WeightId> places;
  std::vector<Weight> weights;
  for (const WeightId weight : kept) {
    places[weight] = weights.size();
    weights.push_back(graph.weights[weight]);
  }
  for (Block& block : graph.blocks) {
    for (Node& node : block.nodes) {
      for (WeightId& weight : node.weights) weight = places.at(weight);
    }
  }
  graph.weights = std::move(weights);
}

/// Layers [begin, end) of a run, `repeat` times one after the other.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t repeat = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// What of a block's layers lies in `pieces`: the ends of runs that were cut, whole runs, and the
/// beginnings of runs that were cut.
std::vector<Segment> segments_of(const LayerKind& first, std::int64_t layers_per_run,
                                 const std::vector<LayerRange>& pieces) {
  const std::int64_t block_end = first.first_layer + first.count * layers_per_run;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> repeats;  // by -begin, end
  const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t repeat) {
    if (begin < end && repeat > 0) repeats[{-begin, -end}] += repeat;
  };
  for (const LayerRange& piece : pieces) {
    const std::int64_t from = std::max(piece.begin, first.first_layer) - first.first_layer;
    const std::int64_t to = std::min(piece.end, block_end) - first.first_layer;
    if (from >= to) continue;
    const std::int64_t first_run = from / layers_per_run;
    const std::int64_t last_run = to / layers_per_run;
    const std::int64_t start = from % layers_per_run;
    const std::int64_t rest = to % layers_per_run;
    if (first_run == last_run) {
      add(start, rest, 1);
      continue;
    }
    if (start > 0) add(start, layers_per_run, 1);
    add(0, layers_per_run, last_run - first_run - (start > 0 ? 1 : 0));
    add(0, rest, 1);
  }
  std::vector<Segment> segments;
  segments.reserve(repeats.size());
  for (const auto& [place, repeat] : repeats) {
    segments.push_back({-place.first, -place.second, repeat});
  }
  return segments;
}

/// The tensor that layer `layer` of a run hands on.
TensorId handed_on(const Block& block, std::int64_t layer) {
  const auto last = std::find_if(block.nodes.rbegin(), block.nodes.rend(),
                                 [&](const Node& node) { return node.layer <= layer; });
  return last->output;
}

class StageBuilder {
 public:
  StageBuilder(const Graph& graph, const ParallelPlan& plan, std::int64_t place)
      : graph_(graph),
        map_(graph),
        kinds_(layer_kinds(graph)),
        pieces_(layers_of_stage(layers_of(graph), plan, place)),
        sections_(sections_of_stage(layers_of(graph), plan, place)),
        interleave_(plan.interleave),
        is_first_(place == 0),
        decodes_(place >= encoder_stages(layers_of(graph), plan.pipeline)),
        result_(graph) {
    result_.blocks.clear();
  }

  Graph run() && {
    for (std::size_t i = 0; i < graph_.blocks.size(); ++i) {
      const Block& block = graph_.blocks[i];
      if (in_encoder(block)) encoder_output_ = block.carried_out;
      const Section section = map_.of_block(i);
      if (section.kind == Section::Kind::layers) {
        add_layers(block, kinds_[section.layer_kind]);
      } else if ((sections_ & bit_of(section.kind)) != 0) {
        add_outside(block, section.kind);
      }
    }
    const bool ends = (sections_ & bit_of(Section::Kind::main_last)) != 0;
    if (!ends) send_on(interleave_);
    connect(ends);
    keep_weights(result_, own_weights());
    count_weights();
    return std::move(result_);
  }

 private:
  void add_outside(const Block& block, Section::Kind kind) {
    // The last stage sends on all of its chunks but the last.
    if (kind == Section::Kind::main_last) send_on(std::exchange(interleave_, 1) - 1);
    Block& placed = result_.blocks.emplace_back(block);
    for (Node& node : placed.nodes) rename_inputs(node);
    placed.carried_in = current(block.carried_in);
    const bool hands_on = kind != Section::Kind::encoder_every && kind != Section::Kind::main_every;
    if (hands_on) hidden_ = block.carried_out;
  }

  void add_layers(const Block& block, const LayerKind& first) {
    const std::vector<Segment> segments = segments_of(first, block.layers_per_run, pieces_);
    for (const Segment& segment : segments) {
      if (!hidden_) received_ = hidden_ = block.carried_in;
      const bool whole = segments.size() == 1 && segment.size() == block.layers_per_run;
      add_segment(block, segment, whole ? Copy::same_tensors : Copy::own_tensors);
      hidden_ = result_.blocks.back().carried_out;
      renamed_[block.carried_out] = *hidden_;
    }
  }

  /// A run that is cut is copied with tensors of its own, so that each is made once.
  enum class Copy { same_tensors, own_tensors };

  void add_segment(const Block& block, const Segment& segment, Copy copy) {
    Block& placed = result_.blocks.emplace_back(block);
    placed.nodes.clear();
    placed.layers_per_run = segment.size();
    placed.first_layer += segment.begin;
    // One kind of layers keeps its symbol; the stage's sizes say how many.
    if (kinds_.size() > 1) placed.repeat = Integer{segment.repeat};
    const TensorId entered =
        segment.begin == 0 ? block.carried_in : handed_on(block, segment.begin - 1);
    placed.carried_in = *hidden_;
    renamed_[entered] = *hidden_;
    for (Node node : block.nodes) {
      if (node.layer < segment.begin || node.layer >= segment.end) continue;
      node.layer -= segment.begin;
      rename_inputs(node);
      if (copy == Copy::own_tensors) node.output = renamed_[node.output] = copied(node.output);
      placed.nodes.push_back(std::move(node));
    }
    placed.carried_out = current(handed_on(block, segment.end - 1));
  }

  TensorId copied(TensorId tensor) {
    result_.tensors.push_back(graph_.tensors[tensor]);
    return result_.tensors.size() - 1;
  }

  [[nodiscard]] TensorId current(TensorId tensor) const {
    const auto found = renamed_.find(tensor);
    return found == renamed_.end() ? tensor : found->second;
  }

  void rename_inputs(Node& node) const {
    for (TensorId& input : node.inputs) input = current(input);
  }

  /// The end of a stage: hidden states go on, and their gradients come back.
  void send_on(std::int64_t times) {
    if (times == 0) return;
    Block block;
    block.path = "pipeline";
    block.repeat = Integer{times};
    block.carried_in = *hidden_;
    block.nodes.push_back(send(*hidden_, "send"));
    block.carried_out = block.nodes.back().output;
    if (decodes_ && encoder_output_) {
      block.nodes.push_back(send(*encoder_output_, "send_encoder_output"));
    }
    result_.blocks.push_back(std::move(block));
  }

  Node send(TensorId tensor, const char* name) {
    const bool training = graph_.options.phase == Phase::train;
    const Collective op{RankGroup::pipeline, CollectiveKind::send,
                        training ? CollectiveKind::send : CollectiveKind::none,
                        result_.tensors[tensor].elements() * Symbol::activation_bytes};
    result_.tensors.push_back(result_.tensors[tensor]);
    return {name,
            {StackRole::single, Part::communication},
            op,
            {tensor},
            result_.tensors.size() - 1,
            {},
            Placement::in_place};
  }

  /// What comes from the stage before, and what leaves to the next one.
  void connect(bool ends) {
    const bool takes_encoder_output = decodes_ && encoder_output_.has_value();
    if (received_) result_.inputs = {*received_};
    if (takes_encoder_output) result_.inputs.push_back(*encoder_output_);
    if (!ends) {
      result_.outputs = {*hidden_};
      if (takes_encoder_output) result_.outputs.push_back(*encoder_output_);
      return;
    }
    for (TensorId& output : result_.outputs) output = current(output);
    if (encoder_output_) std::erase(result_.outputs, *encoder_output_);
  }

  /// Weights that no operator uses are counted only; the first stage holds them.
  [[nodiscard]] std::set<WeightId> own_weights() const {
    std::set<WeightId> weights = used_weights(result_);
    if (!is_first_) return weights;
    const std::set<WeightId> used_anywhere = used_weights(graph_);
    for (WeightId weight = 0; weight < graph_.weights.size(); ++weight) {
      if (!used_anywhere.contains(weight)) weights.insert(weight);
    }
    return weights;
  }

  /// A weight of layers stands for as many of them as its stage has.
  void count_weights() {
    std::map<WeightId, Expr> repeats;
    for (const Block& block : result_.blocks) {
      if (!block.is_layers() || block.layers_per_weights > 1) continue;
      std::set<WeightId> used;
      for (const Node& node : block.nodes) used.insert(node.weights.begin(), node.weights.end());
      for (const WeightId weight : used) repeats[weight] += block.repeat;
    }
    for (const auto& [weight, repeat] : repeats) result_.weights[weight].repeat = repeat;
  }

  const Graph& graph_;
  SectionMap map_;
  std::vector<LayerKind> kinds_;
  std::vector<LayerRange> pieces_;
  SectionSet sections_;
  std::int64_t interleave_;
  bool is_first_;
  bool decodes_;  ///< a stage of the main stack
  Graph result_;
  std::map<TensorId, TensorId> renamed_;  ///< what stands for a tensor of the graph now
  std::optional<TensorId> hidden_;
  std::optional<TensorId> received_;
  std::optional<TensorId> encoder_output_;
};

}  // namespace

Graph stage_of(const Graph& graph, const ParallelPlan& plan, std::int64_t place) {
  if (plan.pipeline == 1) return graph;
  return StageBuilder(graph, plan, place).run();
}

}  // namespace headroom::detail
