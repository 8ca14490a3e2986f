// The graph of one pipeline stage.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph_collectives.h"
#include "graph_passes.h"
#include "layer_ties.h"
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

/// Removes all weights but `kept`, which must include every weight that a node uses.
void keep_weights(Graph& graph, const std::set<WeightId>& kept) {
  std::map<WeightId, WeightId> new_ids;
  std::vector<Weight> weights;
  for (const WeightId weight : kept) {
    new_ids[weight] = weights.size();
    weights.push_back(graph.weights[weight]);
  }
  for (Block& block : graph.blocks) {
    for (Node& node : block.nodes) {
      for (WeightId& weight : node.weights) weight = new_ids.at(weight);
    }
  }
  graph.weights = std::move(weights);
}

/// Layers [begin, end) of a run, repeated `repeat` times from run `first_run` on.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t repeat = 0;
  std::int64_t first_run = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// The layers of a block that lie in `ranges`: ends of runs that are cut, whole runs, and
/// beginnings of runs that are cut.
std::vector<Segment> segments_of(const LayerKind& first, std::int64_t layers_per_run,
                                 const std::vector<LayerRange>& ranges) {
  const std::int64_t block_end = first.first_layer + first.count * layers_per_run;
  std::map<std::pair<std::int64_t, std::int64_t>, Segment> by_place;  // by -begin, -end
  const auto add = [&](Segment segment) {
    if (segment.size() <= 0 || segment.repeat <= 0) return;
    const auto [known, is_new] = by_place.try_emplace({-segment.begin, -segment.end}, segment);
    if (!is_new) known->second.repeat += segment.repeat;
  };
  for (const LayerRange& range : ranges) {
    const std::int64_t from = std::max(range.begin, first.first_layer) - first.first_layer;
    const std::int64_t to = std::min(range.end, block_end) - first.first_layer;
    if (from >= to) continue;
    const std::int64_t first_run = from / layers_per_run;
    const std::int64_t last_run = to / layers_per_run;
    const std::int64_t start = from % layers_per_run;
    const std::int64_t rest = to % layers_per_run;
    if (first_run == last_run) {
      add({start, rest, 1, first_run});
      continue;
    }
    const std::int64_t cut = start > 0 ? 1 : 0;
    if (start > 0) add({start, layers_per_run, 1, first_run});
    add({0, layers_per_run, last_run - first_run - cut, first_run + cut});
    add({0, rest, 1, last_run});
  }
  std::vector<Segment> segments;
  segments.reserve(by_place.size());
  for (const auto& [place, segment] : by_place) segments.push_back(segment);
  return segments;
}

/// The output tensor of layer `layer` of a run.
TensorId output_of(const Block& block, std::int64_t layer) {
  const auto last = std::find_if(block.nodes.rbegin(), block.nodes.rend(),
                                 [&](const Node& node) { return node.layer <= layer; });
  return last->output;
}

class StageBuilder {
 public:
  StageBuilder(const Graph& graph, const ParallelPlan& plan, std::int64_t stage)
      : graph_(graph),
        map_(graph),
        kinds_(layer_kinds(graph)),
        ranges_(layers_of_stage(layers_of(graph), plan, stage)),
        ties_(layer_ties(graph)),
        sections_(sections_of_stage(layers_of(graph), plan, stage)),
        interleave_(plan.interleave),
        is_first_(stage == 0),
        in_main_stack_(stage >= encoder_stages(layers_of(graph), plan.pipeline)),
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
    const bool is_last = (sections_ & bit_of(Section::Kind::main_last)) != 0;
    if (!is_last) send_on(interleave_);
    set_inputs();
    set_outputs(is_last);
    keep_weights(result_, stage_weights());
    count_weights();
    return std::move(result_);
  }

 private:
  void add_outside(const Block& block, Section::Kind kind) {
    // The last stage sends on the output of all its chunks but the last.
    if (kind == Section::Kind::main_last) send_on(std::exchange(interleave_, 1) - 1);
    Block& placed = result_.blocks.emplace_back(block);
    for (Node& node : placed.nodes) rename_inputs(node);
    placed.carried_in = current(block.carried_in);
    const bool makes_hidden =
        kind != Section::Kind::encoder_every && kind != Section::Kind::main_every;
    if (makes_hidden) hidden_ = block.carried_out;
  }

  void add_layers(const Block& block, const LayerKind& first) {
    const std::vector<Segment> segments = segments_of(first, block.layers_per_run, ranges_);
    for (const Segment& segment : segments) {
      if (!hidden_) received_ = hidden_ = block.carried_in;
      const bool whole = segments.size() == 1 && segment.size() == block.layers_per_run;
      add_segment(block, segment, whole ? Outputs::shared : Outputs::copied);
      hidden_ = result_.blocks.back().carried_out;
      renamed_[block.carried_out] = *hidden_;
    }
  }

  /// Segments of a cut run write copies of the block's tensors, so that each tensor has one writer.
  enum class Outputs { shared, copied };

  void add_segment(const Block& block, const Segment& segment, Outputs outputs) {
    Block& placed = result_.blocks.emplace_back(block);
    placed.nodes.clear();
    placed.layers_per_run = segment.size();
    placed.first_layer += segment.first_run * block.layers_per_run + segment.begin;
    // The only kind of layers keeps its symbolic repeat; the stage's sizes give its value.
    if (kinds_.size() > 1) placed.repeat = Integer{segment.repeat};
    const TensorId input =
        segment.begin == 0 ? block.carried_in : output_of(block, segment.begin - 1);
    placed.carried_in = *hidden_;
    renamed_[input] = *hidden_;
    std::set<TensorId> own_caches;
    for (Node node : block.nodes) {
      if (node.layer < segment.begin || node.layer >= segment.end) continue;
      node.layer -= segment.begin;
      if (outputs == Outputs::copied) copy_caches(node, own_caches);
      rename_inputs(node);
      if (outputs == Outputs::copied) node.output = renamed_[node.output] = copied(node.output);
      placed.nodes.push_back(std::move(node));
    }
    placed.carried_out = current(output_of(block, segment.end - 1));
  }

  /// Each segment of a cut run has caches of its own: a cache that two of them read would be taken
  /// for one that a later layer shares.
  void copy_caches(const Node& node, std::set<TensorId>& own) {
    for (const TensorId input : node.inputs) {
      const bool is_cache = is_cached(graph_.tensors[input].type);
      if (is_cache && own.insert(input).second) renamed_[input] = copied(input);
    }
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

  /// Sends hidden states to the next stage; their gradients come back.
  void send_on(std::int64_t times) {
    if (times == 0) return;
    Block block;
    block.path = "pipeline";
    block.repeat = Integer{times};
    block.carried_in = *hidden_;
    block.nodes.push_back(send(*hidden_, "send"));
    block.carried_out = block.nodes.back().output;
    if (passes_encoder_output()) {
      block.nodes.push_back(send(*encoder_output_, "send_encoder_output"));
    }
    result_.blocks.push_back(std::move(block));
    send_choices();
  }

  void send_choices() {
    std::map<TensorId, std::int64_t> times;
    for (const LayerRange& range : ranges_) {
      const auto choice = choice_at(range.end);
      if (choice) ++times[*choice];
    }
    for (const auto& [choice, count] : times) {
      Block block;
      block.path = "pipeline";
      block.repeat = Integer{count};
      block.carried_in = *hidden_;
      block.carried_out = *hidden_;
      block.nodes.push_back(send(
          current(choice), "send_choice",
          {RankGroup::pipeline, CollectiveKind::send, CollectiveKind::none, key_choice_bytes()}));
      result_.blocks.push_back(std::move(block));
    }
  }

  /// The choice of keys that layers on both sides of a cut before `layer` read.
  [[nodiscard]] std::optional<TensorId> choice_at(std::int64_t layer) const {
    for (const LayerTie& tie : ties_) {
      const bool cut = tie.readers.begin <= layer && layer < tie.readers.end;
      if (cut && tie.value == TiedValue::key_choice) return tie.tensor;
    }
    return std::nullopt;
  }

  Node send(TensorId tensor, const char* name) {
    const bool training = graph_.options.phase == Phase::train;
    return send(tensor, name,
                {RankGroup::pipeline, CollectiveKind::send,
                 training ? CollectiveKind::send : CollectiveKind::none,
                 result_.tensors[tensor].elements() * Symbol::activation_bytes});
  }

  Node send(TensorId tensor, const char* name, Collective op) {
    result_.tensors.push_back(result_.tensors[tensor]);
    return {name,
            {StackRole::single, Part::communication},
            std::move(op),
            {tensor},
            result_.tensors.size() - 1,
            {},
            Placement::in_place};
  }

  [[nodiscard]] bool passes_encoder_output() const {
    return in_main_stack_ && encoder_output_.has_value();
  }

  void set_inputs() {
    if (received_) result_.inputs = {*received_};
    if (passes_encoder_output()) result_.inputs.push_back(*encoder_output_);
    std::set<TensorId> choices;
    for (const LayerRange& range : ranges_) {
      const auto choice = choice_at(range.begin);
      if (choice && choices.insert(*choice).second) result_.inputs.push_back(*choice);
    }
  }

  void set_outputs(bool is_last) {
    if (!is_last) {
      result_.outputs = {*hidden_};
      if (passes_encoder_output()) result_.outputs.push_back(*encoder_output_);
      return;
    }
    for (TensorId& output : result_.outputs) output = current(output);
    if (encoder_output_) std::erase(result_.outputs, *encoder_output_);
  }

  /// Weights that the stage uses. Of those that no operator uses, each stage stores its layers',
  /// the first stage the others.
  [[nodiscard]] std::set<WeightId> stage_weights() const {
    std::set<WeightId> weights = used_weights(result_);
    const std::set<WeightId> used_anywhere = used_weights(graph_);
    for (WeightId weight = 0; weight < graph_.weights.size(); ++weight) {
      // The repeat of the only kind of layers is a symbol, which has the stage's value.
      const bool of_layers = graph_.weights[weight].repeat.degree(Symbol::num_hidden_layers) > 0;
      if (!used_anywhere.contains(weight) && (of_layers || is_first_)) weights.insert(weight);
    }
    return weights;
  }

  /// Sets the repeats of the layers' weights to the number of layers in this stage.
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
  std::vector<LayerRange> ranges_;
  std::vector<LayerTie> ties_;
  SectionSet sections_;
  std::int64_t interleave_;
  bool is_first_;
  bool in_main_stack_;
  Graph result_;
  std::map<TensorId, TensorId> renamed_;  ///< from tensors of the graph to those of the stage
  std::optional<TensorId> hidden_;
  std::optional<TensorId> received_;
  std::optional<TensorId> encoder_output_;
};

}  // namespace

Graph stage_of(const Graph& graph, const ParallelPlan& plan, std::int64_t stage) {
  if (plan.pipeline == 1) return graph;
  return StageBuilder(graph, plan, stage).run();
}

}  // namespace headroom::detail
