// Claims: someone else's figure explained as headroom's plus or minus named terms, by exact search.
//
//   claim   37,578,559,488 FLOP
//   ours    37,577,293,824 FLOP per token
//   claim = ours + norm weights, 2 FLOP forward and 4 backward: 1,265,664
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headroom/report.h"

namespace headroom {

/// A convention or part that a count may include or leave out, as a signed amount in the figure.
struct ClaimTerm {
  std::string name;  ///< "without the head"
  Expr formula;
  Integer value = 0;
};

/// A unit of a claim: claim · `denominator` = figure · `numerator`.
struct ClaimScale {
  std::string name;  ///< "per token"; empty for the figure itself
  Integer numerator = 1;
  Integer denominator = 1;
};

/// claim · denominator = (ours + sum of `terms`) · numerator.
struct ClaimExplanation {
  ClaimScale scale;
  std::vector<ClaimTerm> terms;
  /// Steps from our figure to the claim: terms, and the scale unless it is the figure's own.
  [[nodiscard]] std::size_t length() const { return terms.size() + (scale.name.empty() ? 0 : 1); }
};

/// `headroom explain --claim`.
struct ClaimReport {
  Model model;
  Workload workload;
  Subject subject = Subject::flops;
  std::string unit;
  Integer claim = 0;
  ExplainedFigure ours;
  Bindings values;
  std::vector<ClaimExplanation> explanations;  ///< all of the least length; empty: none
  std::size_t terms_tried = 0;
  std::size_t sums_tried = 0;
  std::vector<std::string> notes;
};

/// Searches all sums of at most four terms in every scale. For FLOPs of a training step the figure
/// is that of forward, backward and recomputation. Throws Error{invalid_input} as
/// `make_explain_report` does, and for a claim below 1.
[[nodiscard]] ClaimReport explain_claim(Model model, const WorkloadRequest& request,
                                        Subject subject, Integer claim,
                                        const KvCacheRequest& kv_cache = {});

[[nodiscard]] std::string render(const ClaimReport& report, const RenderOptions& options);

}  // namespace headroom
