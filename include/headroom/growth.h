// Orders of growth, derived from exact costs and written as in Table 1 of "Attention Is All You
// Need" (arXiv 1706.03762): n positions, d width, k kernel, r neighbourhood.
#pragma once

#include <string>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// The dominant monomials of a sum, without constant factors. Empty for zero.
struct Growth {
  Expr dominant;  ///< every coefficient is 1
  bool operator==(const Growth&) const = default;
};

/// Order of growth of `cost`, for one sequence without a past, as all sizes grow. Products that
/// equal the width collapse (h·d_k → d), the feed-forward width counts as the model's width, and a
/// head is at most as wide as the model. Layer counts and bytes per element are constants.
[[nodiscard]] Growth growth_of(const Expr& cost, const Graph& graph);

/// "O(n²·d + n·d²)", "O(1)" for a constant, "–" for zero.
[[nodiscard]] std::string format(const Growth& growth);

/// `cost`, for one sequence without a past, in the paper's letters: "8·n·d² + 4·n²·d". Exact,
/// except that the pairs of a window are those of sequences longer than the window.
[[nodiscard]] Expr in_paper_terms(const Expr& cost, const Graph& graph);
[[nodiscard]] std::string format_in_paper_letters(const Expr& expr);

/// Legend of the letters, on one line.
[[nodiscard]] std::string_view paper_letters_legend() noexcept;

}  // namespace headroom
