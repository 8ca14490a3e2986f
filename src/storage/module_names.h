// ModuleNames: published names of the modules that hold a graph's weights, and the tensors that
// several weights share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"
#include "headroom/model_spec.h"
#include "module_kind.h"
#include "stored/names.h"

namespace headroom::detail {

/// Rows or columns of a stored matrix before a weight's own: QKV in one tensor.
struct StackedBefore {
  StackAxis axis = StackAxis::out;
  std::int64_t size = 0;
};

/// Returns true if the names of the family's stored weights are known.
[[nodiscard]] bool has_stored_names(const ModelSpec& spec);

class ModuleNames {
 public:
  /// A family without stored weights has no names.
  ModuleNames(const ModelSpec& spec, const Graph& graph);

  /// Names of the module of `path`, with {} for the layer and {e} for the expert and without a
  /// prefix; alternatives of different library versions.
  [[nodiscard]] std::vector<std::string> of(std::string_view path) const;

  /// The part of the tensor before the weight; none if it has its own tensor.
  [[nodiscard]] StackedBefore before(std::string_view path) const;

 private:
  NameTable table_;
  bool named_ = false;
  std::map<std::string, MatrixSizes, std::less<>> sizes_;
};

}  // namespace headroom::detail
