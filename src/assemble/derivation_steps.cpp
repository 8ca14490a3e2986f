#include "derivation_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "headroom/error.h"
#include "headroom/parallel_plan.h"
#include "operator_products.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

/// The layers of a path in a stack of several kinds: "[0:48:4]" of "attention.qkv[0:48:4]".
std::string layers_of(const std::string& path) {
  const std::size_t at = path.find('[');
  return at == std::string::npos ? "" : path.substr(at);
}

/// Sublayer that a path within a block belongs to: "attention" of "attention.query". A norm before
/// a sublayer is a group of its own with all other norms.
std::string group_of(const Component& component, const std::string& path) {
  const bool is_norm = component.part == Part::layer_norm || component.part == Part::rms_norm;
  if (is_norm) return "norms";
  const std::string name = path.substr(0, path.find('['));
  return name.substr(0, name.find('.'));
}

/// Nodes of a graph in order, with their blocks.
template <class Visit>
void for_each_node(const Graph& graph, const Visit& visit) {
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) visit(block, node);
  }
}

PlacedStep place(const Block& block, const Node& node) {
  PlacedStep step;
  step.block = block.path + layers_of(node.path);
  step.times = block.repeat;
  step.group = group_of(node.component, node.path);
  step.path = block.path + "." + node.path;
  return step;
}

std::vector<PlacedStep> product_steps(const Graph& graph) {
  std::vector<PlacedStep> steps;
  for_each_node(graph, [&](const Block& block, const Node& node) {
    for (const OperatorProduct& product : products_of(graph, node)) {
      PlacedStep step = place(block, node);
      step.name = product.name;
      step.operands = product.operands;
      step.product = Integer{2} * product.multiply_adds;
      steps.push_back(std::move(step));
    }
  });
  return steps;
}

/// The term of the highest powers, by the order of the symbols.
const Term& leading_term(const Expr& expr) {
  return *std::ranges::max_element(expr.terms(), {}, &Term::powers);
}

/// `dividend` / `divisor` by long division; empty if there is a remainder.
std::optional<Expr> exact_quotient(Expr dividend, const Expr& divisor) {
  const Term& by = leading_term(divisor);
  Expr quotient;
  while (!dividend.is_zero()) {
    Term term = leading_term(dividend);
    if (!divides(by.powers, term.powers) || term.coefficient % by.coefficient != 0) {
      return std::nullopt;
    }
    term.coefficient /= by.coefficient;
    for (std::size_t i = 0; i < kSymbolCount; ++i) {
      term.powers[i] = static_cast<std::uint8_t>(term.powers[i] - by.powers[i]);
    }
    const Expr step = Expr::from_terms({term});
    quotient += step;
    dividend -= step * divisor;
  }
  return quotient;
}

/// `cost` per element of `shape`, if it is a whole number: "[b,h,s,s] × 5".
std::string per_element(const Expr& cost, const std::vector<Expr>& shape) {
  Expr elements = Integer{1};
  for (const Expr& size : shape) elements = elements * size;
  const auto each = elements.is_zero() ? std::nullopt : exact_quotient(cost, elements);
  if (!each || !each->constant()) return shape_text(shape);
  return fmt::format("{} × {}", shape_text(shape), to_string(*each->constant()));
}

/// FLOPs of the element-wise operators: the factors of conventions.md times the elements.
std::vector<PlacedStep> elementwise_steps(const AnalyzeReport& report) {
  std::vector<PlacedStep> steps;
  std::size_t index = 0;
  for_each_node(report.graph, [&](const Block& block, const Node& node) {
    const Expr& all = report.analysis.nodes.at(index++).cost.forward.elementwise_flops;
    if (all.is_zero()) return;
    PlacedStep step = place(block, node);
    step.name = leaf_name(node.path);
    // Costs cover all layers.
    if (const auto one = exact_quotient(all, block.repeat)) {
      step.product = *one;
    } else {
      step.times = Integer{1};
      step.product = all;
    }
    step.operands = per_element(step.product, report.graph.tensors[node.output].shape);
    steps.push_back(std::move(step));
  });
  return steps;
}

/// The first node that uses each weight.
struct User {
  const Block* block = nullptr;
  const Node* node = nullptr;
};

std::map<WeightId, User> first_users(const Graph& graph) {
  std::map<WeightId, User> users;
  for_each_node(graph, [&](const Block& block, const Node& node) {
    for (const WeightId id : node.weights) users.try_emplace(id, User{&block, &node});
  });
  return users;
}

/// Block of a weight that this phase does not run: its path without the last parts.
std::string block_of(const Graph& graph, const std::string& path) {
  std::string found;
  for (const Block& block : graph.blocks) {
    if (path.starts_with(block.path + ".") && block.path.size() > found.size()) found = block.path;
  }
  return found.empty() ? path.substr(0, path.find('.')) : found;
}

std::vector<PlacedStep> weight_steps(const Graph& graph) {
  const std::map<WeightId, User> users = first_users(graph);
  std::vector<PlacedStep> steps;
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    const Weight& weight = graph.weights[id];
    if (weight.kind == WeightKind::buffer) continue;
    PlacedStep step;
    const auto user = users.find(id);
    const std::string block = block_of(graph, weight.path);
    step.block = block;
    if (user != users.end()) step.block += layers_of(user->second.node->path);
    const std::string within =
        weight.path.starts_with(block + ".") ? weight.path.substr(block.size() + 1) : weight.path;
    step.group = group_of(weight.component, within);
    step.times = weight.repeat;
    step.path = weight.path;
    const std::size_t group = step.group.size();
    step.name = within.starts_with(step.group + ".") ? within.substr(group + 1) : within;
    step.operands = shape_text(weight.shape);
    step.product = weight.elements();
    steps.push_back(std::move(step));
  }
  return steps;
}

/// "b·s·d × 2 B": elements and their width, where the bytes are such a product.
std::string saved_operands(const SavedTensor& saved, const Bindings& values) {
  for (const Symbol width : {Symbol::activation_bytes, Symbol::mask_bytes, Symbol::cast_bytes}) {
    const auto elements = exact_quotient(saved.bytes, width);
    if (!elements) continue;
    return fmt::format("{} × {} B", format(*elements), to_string(values.get(width).value_or(0)));
  }
  return fmt::format("{} B", format(saved.bytes));
}

std::vector<PlacedStep> saved_steps(const AnalyzeReport& report) {
  const Recompute recompute = report.workload.recompute;
  const Bindings values = bindings_of(report.workload, report.graph);
  std::map<std::string, PlacedStep> places;
  for_each_node(report.graph, [&](const Block& block, const Node& node) {
    PlacedStep step = place(block, node);
    places.try_emplace(step.path, step);
  });
  std::vector<PlacedStep> steps;
  if (recompute == Recompute::full) {
    PlacedStep inputs;
    inputs.block = inputs.group = "layers";
    inputs.name = inputs.path = "layer inputs";
    inputs.operands = "recomputed from these";
    inputs.times = Integer{1};
    inputs.product = report.analysis.layer_inputs;
    steps.push_back(std::move(inputs));
  }
  for (const SavedTensor& saved : report.analysis.saved) {
    if (!stays_saved(saved, recompute)) continue;
    PlacedStep step = places.at(saved.path);
    step.times = saved.repeat;
    step.name = fmt::format("{}: {}", leaf_name(step.path), saved.what);
    step.operands = saved_operands(saved, values);
    step.product = saved.bytes;
    steps.push_back(std::move(step));
  }
  return steps;
}

/// Keys and values of one cache tensor; one step for a latent or a state.
void add_cache(const AnalyzeReport& report, const CacheTensor& cache,
               std::vector<PlacedStep>& steps) {
  const Tensor& tensor = report.graph.tensors[cache.tensor];
  const Expr bytes = bytes_of(tensor.type);
  const Integer width_bytes = bytes.evaluate(bindings_of(report.workload, report.graph));
  const auto add = [&](const char* name, const std::vector<Expr>& shape) {
    PlacedStep step = place(*cache.block, *cache.node);
    Expr elements = Integer{1};
    for (const Expr& size : shape) elements = elements * size;
    step.group = tensor.name.substr(0, tensor.name.find('.'));
    step.name = name;
    step.operands = fmt::format("{} × {} B", shape_text(shape), to_string(width_bytes));
    step.product = elements * bytes;
    steps.push_back(std::move(step));
  };
  const KvCacheAppend* append = nullptr;
  for (const Node& node : cache.block->nodes) {
    const bool writes = std::ranges::find(node.inputs, cache.tensor) != node.inputs.end();
    if (writes && append == nullptr) append = std::get_if<KvCacheAppend>(&node.op);
  }
  const Expr width = tensor.shape.back();
  if (append == nullptr || tensor.shape.size() != 3) return add("state", tensor.shape);
  const Expr keys = append->kv_heads * append->head_dim;
  const Expr values = width - keys;
  const Expr& tokens = tensor.shape[1];
  add(values.is_zero() ? "latent" : "keys",
      {tensor.shape[0], append->kv_heads, tokens, append->head_dim});
  if (values.is_zero()) return;
  const auto value_dim = exact_quotient(values, append->kv_heads);
  if (value_dim) return add("values", {tensor.shape[0], append->kv_heads, tokens, *value_dim});
  add("values", {tensor.shape[0], tokens, values});
}

std::vector<PlacedStep> cache_steps(const AnalyzeReport& report) {
  if (!report.kv_cache || report.analysis.kv_cache.empty()) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} has no KV-cache in the {} phase", report.model.spec.name,
                            name_of(report.workload.phase)),
                {},
                fmt::format("choose another {}, or a decoder with {} prefill or decode",
                            Setting::subject, Setting::phase));
  }
  if (!has_plain_values(*report.kv_cache)) {
    throw Error(ErrorCode::invalid_input,
                "a KV-cache with scales or with types of several widths has no whole bytes per "
                "element, so its bytes are not a product of a shape",
                {}, "leave out the steps, or choose a type of 1, 2 or 4 bytes for keys and values");
  }
  std::vector<PlacedStep> steps;
  for (const CacheTensor& cache : cache_tensors(report.graph)) add_cache(report, cache, steps);
  return steps;
}

/// Forward, backward and recomputed FLOPs of each component.
std::vector<PlacedStep> training_steps(const AnalyzeReport& report) {
  std::vector<PlacedStep> steps;
  const auto add = [&](const char* pass, const std::string& name, const char* operands,
                       const Expr& flops) {
    if (flops.is_zero()) return;
    steps.push_back({pass, Integer{1}, name.substr(0, name.find('.')), name,
                     fmt::format("{}.{}", pass, name), operands, flops});
  };
  for (const ComponentAnalysis& component : report.analysis.components) {
    add("forward", name_of(component.component), "Y = X·W", component.cost.forward.matrix_flops);
  }
  for (const ComponentAnalysis& component : report.analysis.components) {
    add("backward", name_of(component.component), "dX = dY·Wᵀ, dW = Xᵀ·dY",
        component.cost.backward.matrix_flops);
  }
  add("recomputed", std::string(name_of(report.workload.recompute)), "Y = X·W again",
      report.analysis.recompute.matrix_flops);
  return steps;
}

std::vector<PlacedStep> state_steps(const AnalyzeReport& report) {
  const BytesPerParameter bytes = bytes_per_parameter(report.workload.dtype);
  const Expr& parameters = report.analysis.parameters.total;
  std::vector<PlacedStep> steps;
  const auto add = [&](const char* group, const char* name, Integer each) {
    if (each == 0) return;
    steps.push_back({"training", Integer{1}, group, name, fmt::format("{}.{}", group, name),
                     fmt::format("N parameters × {} B", to_string(each)), Expr(each) * parameters});
  };
  add("model", "weights", bytes.weights);
  add("model", "gradients", bytes.gradients);
  add("optimizer", "float32 copy of the weights", bytes.master);
  add("optimizer", "mean of the gradient", bytes.one_state);
  add("optimizer", "variance of the gradient", bytes.one_state);
  return steps;
}

void require_training(const AnalyzeReport& report, Subject subject) {
  if (report.workload.phase == Phase::train) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} is a figure of a training step, and the phase is {}",
                          name_of(subject), name_of(report.workload.phase)),
              {}, fmt::format("add {} train", Setting::phase));
}

/// Adam trains the weights in the workload's type: no other type of them counts here.
void require_trained_weights(const AnalyzeReport& report) {
  const Workload& workload = report.workload;
  if (!workload.weights || name_of(*workload.weights) == name_of(workload.dtype)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("the states are those of Adam, which trains weights in {}, so weights in "
                          "{} have no effect",
                          name_of(workload.dtype), name_of(*workload.weights)),
              {},
              fmt::format("leave out {} or the recipe; `headroom fit` counts other recipes",
                          Setting::weights));
}

}  // namespace

BytesPerParameter bytes_per_parameter(DType dtype) {
  const RecipeInfo& recipe = info(bytes_of(dtype) == 2 ? Recipe::megatron : Recipe::float32);
  return {recipe.weight_bytes, recipe.gradient_bytes, recipe.master_bytes, recipe.state_bytes,
          std::string(recipe.source)};
}

std::string unit_of(Subject subject) {
  switch (subject) {
    case Subject::flops:
    case Subject::elementwise:
    case Subject::training:
      return "FLOP";
    case Subject::params:
      return "parameters";
    case Subject::activations:
    case Subject::kv:
    case Subject::states:
      break;
  }
  return "B";
}

std::vector<PlacedStep> steps_of(const AnalyzeReport& report, Subject subject) {
  switch (subject) {
    case Subject::flops:
      return product_steps(report.graph);
    case Subject::elementwise:
      return elementwise_steps(report);
    case Subject::params:
      return weight_steps(report.graph);
    case Subject::activations:
      if (report.workload.phase == Phase::train) return saved_steps(report);
      throw Error(
          ErrorCode::invalid_input,
          "the peak of live activations is a maximum over the operators, not a sum of steps", {},
          fmt::format("add {} train for the tensors that training saves, or leave out "
                      "the steps",
                      Setting::phase));
    case Subject::kv:
      return cache_steps(report);
    case Subject::training:
      require_training(report, subject);
      return training_steps(report);
    case Subject::states:
      break;
  }
  require_training(report, subject);
  require_trained_weights(report);
  return state_steps(report);
}

Expr figure_of(const AnalyzeReport& report, Subject subject) {
  const Analysis& analysis = report.analysis;
  switch (subject) {
    case Subject::flops:
      return analysis.total.forward.matrix_flops;
    case Subject::elementwise:
      return analysis.total.forward.elementwise_flops;
    case Subject::params:
      return analysis.parameters.total;
    case Subject::activations:
      return saved_bytes(analysis, report.workload.recompute);
    case Subject::kv:
      return kv_cache_bytes(analysis);
    case Subject::training:
      return analysis.total.forward.matrix_flops + analysis.total.backward.matrix_flops +
             analysis.recompute.matrix_flops;
    case Subject::states:
      break;
  }
  return bytes_per_parameter(report.workload.dtype).total() * analysis.parameters.total;
}

}  // namespace headroom::detail
