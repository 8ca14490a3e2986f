// The format of each copy of a graph's weights, by the rules of its model's storage.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/graph.h"
#include "headroom/model_spec.h"
#include "module_names.h"
#include "rule_matcher.h"

namespace headroom::detail {

class WeightFormats {
 public:
  /// `spec` and `graph` must outlive the formats.
  WeightFormats(const ModelSpec& spec, const Graph& graph);

  /// The format of `weight`, a matrix or stacked experts, in a layer of its stack.
  [[nodiscard]] const StorageFormat& of(const Weight& weight, std::int64_t layer) const;

 private:
  const Graph& graph_;
  RuleMatcher rules_;
  ModuleNames names_;
};

/// The type of weights without a rule, in torch's words.
[[nodiscard]] const std::string& plain_type_of(const ModelSpec& spec);

}  // namespace headroom::detail
