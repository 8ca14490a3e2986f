// Sums over the tensors of each component, in order of first appearance.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_source.h"

namespace headroom::detail {

class ComponentSums {
 public:
  void add(std::string_view category, std::string_view component, const TensorTotals& totals);
  [[nodiscard]] std::vector<ComponentRow> rows() && { return std::move(rows_); }

 private:
  std::vector<ComponentRow> rows_;
  std::map<std::string, std::size_t, std::less<>> by_component_;
};

/// Sets `pattern` to the tensor name with {} for its layer and expert numbers, so that all layers
/// share one name: "layers.{}.mlp.up_proj.weight".
void name_pattern(std::string_view name, std::string& pattern);

}  // namespace headroom::detail
