#include "module_names.h"

#include "family.h"
#include "pattern_set.h"

namespace headroom::detail {
namespace {

/// "layers.{}.mlp.gate.weight" -> "layers.{}.mlp.gate"
std::string module_of(std::string_view tensor) {
  for (const std::string_view kind : {".weight", ".bias"}) {
    if (tensor.ends_with(kind)) return std::string(tensor.substr(0, tensor.size() - kind.size()));
  }
  return std::string(tensor);
}

}  // namespace

bool has_stored_names(const ModelSpec& spec) {
  const auto has_names = [](std::string_view type) {
    const Family* const family = find_family(type);
    return family != nullptr && std::holds_alternative<NameTable>(family->names);
  };
  return has_names(spec.model_type) && (spec.text_type.empty() || has_names(spec.text_type));
}

ModuleNames::ModuleNames(const ModelSpec& spec, const Graph& graph)
    : named_(has_stored_names(spec)) {
  if (!named_) return;
  table_ = name_table(spec);
  for (const Weight& weight : graph.weights) {
    sizes_.emplace(weight.path, matrix_sizes(weight, graph.sizes));
  }
}

std::vector<std::string> ModuleNames::of(std::string_view path) const {
  std::vector<std::string> modules;
  if (!named_) return modules;
  for (const StoredName& name : find_stored_names(table_, path)) {
    modules.emplace_back(without_prefix(module_of(name.pattern)));
  }
  return modules;
}

StackedBefore ModuleNames::before(std::string_view path) const {
  StackedBefore before;
  if (!named_) return before;
  const std::vector<StoredName> names = find_stored_names(table_, path);
  if (names.empty() || names.front().layout.stacking == Stacking::alone) return before;
  before.axis = names.front().layout.axis;
  for (const std::string& part : stacked_paths(table_, path, names.front())) {
    if (part == path) break;
    const auto found = sizes_.find(part);
    if (found == sizes_.end()) continue;  // the model lacks this part
    before.size += before.axis == StackAxis::out ? found->second.out : found->second.in;
  }
  return before;
}

}  // namespace headroom::detail
