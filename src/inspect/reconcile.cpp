#include "reconcile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "component_sums.h"
#include "headroom/graph.h"
#include "tensor_finder.h"
#include "weight_places.h"

namespace headroom::detail {
namespace {

// No published model has as many tensors.
constexpr Integer kMostMissing = 10'000'000;
// Further problems are only counted.
constexpr std::size_t kShownProblems = 100;

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::int64_t number(const Expr& expr, const Bindings& sizes) { return expr.evaluate_int64(sizes); }

/// Compares two tensors by samples of their bytes.
bool look_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  constexpr std::size_t kSampleBytes = 4096;
  constexpr std::size_t kSamples = 16;
  if (a.size() != b.size()) return false;
  if (a.size() <= kSamples * kSampleBytes) return std::ranges::equal(a, b);
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::size_t at = (a.size() - kSampleBytes) / (kSamples - 1) * i;
    if (!std::ranges::equal(a.subspan(at, kSampleBytes), b.subspan(at, kSampleBytes))) return false;
  }
  return true;
}

class Reconciler {
 public:
  Reconciler(const LogicalTensors& tensors, const Model& model, NameTable names)
      : tensors_(tensors),
        spec_(model.spec),
        graph_(build_graph(spec_, all_parts())),
        places_(spec_, graph_, std::move(names)),
        finder_(tensors, places_.table()),
        owned_(tensors.size()) {}

  Reconciled run() {
    const Integer missing =
        expected_tensors() - Integer{static_cast<std::int64_t>(tensors_.size())};
    if (missing > kMostMissing) {
      report_too_many_missing(missing);
    } else {
      find_weights();
      explain_rest();
    }
    reconciled_.components = std::move(sums_).rows();
    return std::move(reconciled_);
  }

 private:
  /// Stored tensors of all weights, over all layers and experts.
  [[nodiscard]] Integer expected_tensors() const {
    Integer tensors = 0;
    for (const Weight& weight : graph_.weights) {
      tensors += weight.repeat.evaluate(graph_.sizes) *
                 Integer{places_.patterns(weight).front().tensors()};
    }
    return tensors;
  }

  /// A wrong or damaged config may require billions of tensors.
  void report_too_many_missing(Integer missing) {
    reconciled_.result.problems.push_back(
        {ProblemKind::missing_tensor, "",
         fmt::format("the config requires {} more tensors than the files have",
                     to_string(missing))});
    reconciled_.result.problem_count = static_cast<std::int64_t>(
        std::min<Integer>(missing, std::numeric_limits<std::int64_t>::max()));
  }

  void find_weights() {
    std::set<WeightId> done;  // tied weights belong to the first node that uses them
    for (const Block& block : graph_.blocks) {
      for (const Node& node : block.nodes) {
        for (const WeightId id : node.weights) {
          if (done.insert(id).second) find_layers(block, node, graph_.weights[id]);
        }
      }
    }
    // The builder appends weights without operators last.
    for (WeightId id = graph_.weights.size() - spec_.counted_only.size();
         id < graph_.weights.size(); ++id) {
      find_counted(graph_.weights[id]);
    }
  }

  /// A weight of no operator: towers are counted, but have no operators.
  void find_counted(const Weight& weight) {
    reconciled_.result.expected_parameters +=
        weight.repeat.evaluate(graph_.sizes) * weight.elements().evaluate(graph_.sizes);
    const std::int64_t layers = number(weight.repeat, graph_.sizes);
    for (std::int64_t layer = 0; layer < layers; ++layer) find_weight(weight, layer);
  }

  void find_layers(const Block& block, const Node& node, const Weight& weight) {
    const std::int64_t runs = number(block.repeat, graph_.sizes);
    std::int64_t last = -1;
    for (std::int64_t run = 0; run < runs; ++run) {
      const std::int64_t layer = block.weights_of(node, run);
      if (layer == last) continue;  // layers that share their weights
      last = layer;
      if (weight.kind == WeightKind::parameter) {
        reconciled_.result.expected_parameters += weight.elements().evaluate(graph_.sizes);
      }
      find_weight(weight, layer);
    }
  }

  /// Assigns one layer's tensors to a weight.
  void find_weight(const Weight& weight, std::int64_t layer) {
    const WeightPattern& pattern = finder_.stored_pattern(places_.patterns(weight), layer);
    const Integer before = reconciled_.result.found_parameters;
    const std::int64_t problems = reconciled_.result.problem_count;
    for (std::int64_t expert = 0; expert < pattern.tensors(); ++expert) {
      claim(weight, pattern, filled(pattern.name.pattern, layer, expert));
    }
    const bool claimed = problems == reconciled_.result.problem_count;
    const Integer joined = reconciled_.result.found_parameters - before;
    if (pattern.joined > 1 && claimed && joined != weight.elements().evaluate(graph_.sizes)) {
      report({ProblemKind::wrong_shape, filled(pattern.name.pattern, layer, 0),
              fmt::format("has other rows, with the tensors beside it, than {}", weight.path)});
    }
  }

  void claim(const Weight& weight, const WeightPattern& pattern, const std::string& name) {
    const auto index = finder_.find(name);
    if (!index) return report_missing(weight, name);
    const LogicalTensor tensor = tensors_[*index];
    const bool first_owner = !owned_[*index];
    owned_[*index] = true;
    if (!pattern.fits(tensor.shape)) {
      report({ProblemKind::wrong_shape, std::string(tensor.name),
              fmt::format("has shape {}, but {} requires {}", shape_text(tensor.shape), weight.path,
                          shape_text(expected_shape(pattern)))});
      return;
    }
    if (weight.kind == WeightKind::buffer) {
      if (first_owner) add_extra(reconciled_.extras, buffer_kind(weight), tensor);
      return;
    }
    const std::int64_t elements = pattern.elements(tensor.shape);
    reconciled_.result.found_parameters += elements;
    TensorTotals totals{0, elements, 0};
    if (first_owner) {  // stacked weights share a tensor: the first counts its bytes
      totals.tensors = tensor.totals.tensors;
      totals.bytes = tensor.totals.bytes;
    }
    sums_.add(headroom::name_of(weight.role), headroom::name_of(weight.component), totals);
  }

  /// Buffers of the graph: a router's score bias, BART's logit bias, and constants of layers.
  static ExtraKind buffer_kind(const Weight& weight) {
    if (weight.path.find("router") != std::string::npos) return ExtraKind::router_bias;
    return weight.path.starts_with("head") ? ExtraKind::head_buffer : ExtraKind::layer_constant;
  }

  /// Tables of sines follow from their sizes; transformers 5 leaves them out.
  [[nodiscard]] bool is_computed(const Weight& weight) const {
    return spec_.position.table == PositionTable::sinusoidal_halves &&
           weight.path.ends_with("embeddings.position_embeddings.weight");
  }

  static std::vector<std::int64_t> expected_shape(const WeightPattern& pattern) {
    std::vector<std::int64_t> shape;
    if (pattern.tensors() != pattern.experts) shape.push_back(pattern.experts);
    shape.push_back(pattern.stored.rows);
    if (pattern.stored.columns != 1) shape.push_back(pattern.stored.columns);
    return shape;
  }

  void report_missing(const Weight& weight, const std::string& name) {
    if (tensors_.files().is_part()) return;  // it may be in another file
    const bool is_buffer = weight.kind == WeightKind::buffer;
    if (is_buffer && buffer_kind(weight) == ExtraKind::head_buffer) return;  // it holds zeros only
    if (is_computed(weight)) return;
    if (weight.path == "head.language_model.weight") {
      reconciled_.extras.push_back(
          {"missing untied head", {}, fmt::format("{} (not tied by the config)", name)});
      return;
    }
    report({ProblemKind::missing_tensor, name, fmt::format("{} has no tensor", weight.path)});
  }

  void report(Problem problem) {
    Reconciliation& result = reconciled_.result;
    ++result.problem_count;
    if (result.problems.size() < kShownProblems) result.problems.push_back(std::move(problem));
  }

  void explain_rest() {
    const std::set<std::int64_t> prediction_layers = multi_token_prediction_layers();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (owned_[i] || tensors_.is_piece(i)) continue;
      const LogicalTensor tensor = tensors_[i];
      const auto layer = layer_number(tensor.name);
      if (layer && prediction_layers.contains(*layer)) {
        add_extra(reconciled_.extras, ExtraKind::multi_token_prediction, tensor);
      } else if (const auto kind = extra_kind(places_.table(), tensor.name)) {
        add_extra(reconciled_.extras, kind_of_extra(*kind, i), tensor);
      } else {
        report({ProblemKind::unknown_tensor, std::string(tensor.name),
                fmt::format("{} {}", tensor.type, shape_text(tensor.shape))});
      }
    }
  }

  /// Numbers of the layers after the model's last that merge an embedding with a hidden state, as
  /// in DeepSeek-V3's multi-token prediction (arXiv 2412.19437, section 2.2).
  std::set<std::int64_t> multi_token_prediction_layers() {
    std::set<std::int64_t> layers;
    for (std::int64_t layer = spec_.main_stack().num_layers;; ++layer) {
      const bool exists = finder_.find(fmt::format("layers.{}.eh_proj.weight", layer)) ||
                          finder_.find(fmt::format("blk.{}.nextn.eh_proj.weight", layer));
      if (!exists) return layers;
      layers.insert(layer);
    }
  }

  /// The kind of a head weight that the config does not have: a copy of the embedding, an untied
  /// head with values of its own, or a head that this class does not use.
  ExtraKind kind_of_extra(ExtraKind kind, std::size_t index) {
    const LogicalTensor tensor = tensors_[index];
    const bool is_head = tensor.name.ends_with("head.weight") || tensor.name == "output.weight" ||
                         tensor.name.ends_with("decoder.weight");
    if (kind != ExtraKind::tied_copy || !is_head) return kind;
    if (!spec_.head.language_model) return ExtraKind::unused_head;
    const auto embedding = std::ranges::find_if(graph_.weights, [](const Weight& weight) {
      return weight.path.ends_with("embeddings.word_embeddings.weight");
    });
    if (embedding == graph_.weights.end()) return kind;
    const auto& name = places_.patterns(*embedding).front().name.pattern;
    const auto table = finder_.find(name);
    const auto& stored = tensors_.files().tensors();
    if (!table || *table >= stored.size() || index >= stored.size()) return kind;
    const bool equal =
        look_equal(tensors_.files().data(stored[*table]), tensors_.files().data(stored[index]));
    return equal ? kind : ExtraKind::untied_head;
  }

  const LogicalTensors& tensors_;
  const ModelSpec& spec_;
  Graph graph_;
  WeightPlaces places_;
  TensorFinder finder_;
  std::vector<bool> owned_;
  ComponentSums sums_;
  Reconciled reconciled_;
};

}  // namespace

void add_extra(std::vector<ExtraRow>& rows, ExtraKind kind, const LogicalTensor& tensor) {
  const std::string_view name = name_of(kind);
  auto found = std::ranges::find(rows, name, &ExtraRow::kind);
  if (found == rows.end()) {
    rows.push_back({std::string(name), {}, std::string(tensor.name)});
    found = rows.end() - 1;
  }
  found->totals += tensor.totals;
}

Reconciled reconcile(const LogicalTensors& tensors, Model model, NameTable names) {
  Reconciled reconciled = Reconciler(tensors, model, std::move(names)).run();
  reconciled.result.model = std::move(model);
  return reconciled;
}

}  // namespace headroom::detail
