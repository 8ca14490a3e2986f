// The figures of a report as formulas that a reader of its page can try with other lengths, batches
// and types. Internal to src/report.
//
//   <section class="live"> … <script type="application/json" class="formulas"> </section>
//
// The JSON holds every figure as polynomials, its pointer into the JSON report, and the values of
// all symbols; src/page/formulas.ts evaluates it exactly.
#pragma once

#include <string>
#include <vector>

#include "headroom/report.h"
#include "json_writer.h"

namespace headroom::detail {

/// One figure: the largest of its polynomials.
struct LiveFigure {
  std::string pointer;  ///< JSON pointer (RFC 6901) into the report: "/flops/forward/matrix"
  std::string title;
  std::string unit;
  std::vector<Expr> formulas;  ///< with relations between the model's sizes applied
  bool is_part = false;        ///< of a component, else a total
};

/// The totals of the report, then its components' matrix FLOPs.
[[nodiscard]] std::vector<LiveFigure> live_figures(const AnalyzeReport& report);

/// True if symbols that depend on the workload are those that the page's script derives.
[[nodiscard]] bool can_be_tried(const AnalyzeReport& report,
                                const std::vector<LiveFigure>& figures);

/// Figures with their polynomials, symbols with their values, and the rules of derived symbols.
[[nodiscard]] Json to_json(const AnalyzeReport& report, const std::vector<LiveFigure>& figures);

/// The section of a page: every formula, the formula with numbers, the result.
[[nodiscard]] std::string live_formulas(const AnalyzeReport& report);

}  // namespace headroom::detail
