#include "linear_modules.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "headroom/graph.h"
#include "stored/names.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kWeight = ".weight";

bool multiplies(const Op& op) {
  return std::holds_alternative<Linear>(op) || std::holds_alternative<HeadLinear>(op) ||
         std::holds_alternative<GroupedLinear>(op) || std::holds_alternative<ExpertLinear>(op);
}

/// "layers.{}.mlp.experts.{e}.up_proj.weight" -> "layers.*.mlp.experts.*.up_proj".
std::string module_name(std::string_view pattern) {
  std::string name(pattern.substr(0, pattern.size() - kWeight.size()));
  for (const std::string_view placeholder : {"{}", "{e}"}) {
    const auto at = name.find(placeholder);
    if (at != std::string::npos) name.replace(at, placeholder.size(), "*");
  }
  return name;
}

/// A weight as a module, or as a part of one.
struct ModulePart {
  LinearModule module;
  StoredLayout layout;
};

std::optional<ModulePart> part_of(const Graph& graph, const Node& node, const Weight& weight,
                                  const NameTable& names) {
  const std::vector<StoredName> stored = find_stored_names(names, weight.path);
  if (stored.empty() || !stored.front().pattern.ends_with(kWeight)) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const Expr& size : weight.shape) {
    shape.push_back(size.evaluate_int64(graph.sizes));
  }
  const StoredName& name = stored.front();
  auto copies = weight.repeat.evaluate_int64(graph.sizes);
  if (names_experts(name.pattern)) {
    copies *= shape.front();
    shape.erase(shape.begin());
  }
  if (shape.size() != 2) return std::nullopt;
  // A transform before the head keeps the width.
  const bool is_head = node.component.part == Part::head && shape[0] != shape[1];
  return ModulePart{{module_name(name.pattern), shape[1], shape[0], copies, is_head}, name.layout};
}

/// Adds a part to the module of its name among those from `first` on, or starts one.
void add_part(const ModulePart& part, std::size_t first, std::vector<LinearModule>& modules) {
  const auto begin = modules.begin() + static_cast<std::ptrdiff_t>(first);
  const auto module = std::find_if(begin, modules.end(), [&](const LinearModule& other) {
    return other.name == part.module.name;
  });
  if (module == modules.end()) {
    modules.push_back(part.module);
    return;
  }
  switch (part.layout.axis) {
    case StackAxis::out:
      module->out_features += part.module.out_features;
      break;
    case StackAxis::in:
      module->in_features += part.module.in_features;
      break;
  }
}

}  // namespace

std::vector<LinearModule> linear_modules(const ModelSpec& spec) {
  const Graph graph = build_graph(spec, {});
  const NameTable names = name_table(spec);
  std::vector<LinearModule> modules;
  for (const Block& block : graph.blocks) {
    // Parts of one module stand in one layer of a block.
    std::int64_t layer = -1;
    std::size_t first = modules.size();
    for (const Node& node : block.nodes) {
      if (std::exchange(layer, node.layer) != node.layer) first = modules.size();
      if (!multiplies(node.op)) continue;
      for (const WeightId id : node.weights) {
        const std::optional<ModulePart> part = part_of(graph, node, graph.weights[id], names);
        if (part) add_part(*part, first, modules);
      }
    }
  }
  return modules;
}

}  // namespace headroom::detail
