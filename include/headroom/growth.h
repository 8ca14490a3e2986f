// Orders of growth, derived from exact costs and written as Table 1 of "Attention Is All You Need"
// (arXiv 1706.03762) writes them: n positions, d width, k kernel, r neighbourhood.
#pragma once

#include <string>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// The monomials of a sum that none of its others outgrows, constants dropped. Empty for zero.
struct Growth {
  Expr dominant;  ///< every coefficient is 1
  bool operator==(const Growth&) const = default;
};

/// What `cost` of one sequence without a past grows like when all sizes do: products that equal the
/// width are collapsed (h·d_k → d), the feed-forward network's width counts as the model's, and a
/// head is no wider than the model. Numbers of layers and bytes of an element are constants.
[[nodiscard]] Growth growth_of(const Expr& cost, const Graph& graph);

/// "O(n²·d + n·d²)", "O(1)" for a constant, "–" for zero.
[[nodiscard]] std::string format(const Growth& growth);

/// `cost` of one sequence without a past in the paper's letters, exact but for a window's pairs,
/// which are those of a length beyond it: "8·n·d² + 4·n²·d".
[[nodiscard]] Expr in_paper_terms(const Expr& cost, const Graph& graph);
[[nodiscard]] std::string format_in_paper_letters(const Expr& expr);

/// What the letters mean, on one line.
[[nodiscard]] std::string_view paper_letters_legend() noexcept;

}  // namespace headroom
