// Matrix products of an operator as a textbook writes them, from the shapes of its tensors and
// weights. The counts here are made apart from those of src/analytic, which they are compared with.
// Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/graph.h"

namespace headroom::detail {

/// "[b,s,h·k]"
[[nodiscard]] std::string shape_text(const std::vector<Expr>& shape);

/// Last part of a path without its layers: "query" of "attention.query.weight", "out" of
/// "attention.out[0:3]".
[[nodiscard]] std::string leaf_name(std::string path);

/// One product of an operator.
struct OperatorProduct {
  std::string name;
  std::string operands;  ///< "X[b,s,d] × W[d,h·k] → [b,s,h·k]"
  Expr multiply_adds;
};

/// The matrix products of one run of `node`; empty for element-wise operators but a softmax, which
/// has its place between two products and no FLOPs of its own here.
[[nodiscard]] std::vector<OperatorProduct> products_of(const Graph& graph, const Node& node);

}  // namespace headroom::detail
