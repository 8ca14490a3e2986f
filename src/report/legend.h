// Legend of the letters in formulas. A letter means the same in every report: see expr.h. Internal
// to src/report.
//
//   where     s seq_len · t visible_keys = p + s · p past_len · d hidden_size
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "document.h"
#include "headroom/expr.h"

namespace headroom::detail {

/// Symbols whose spelling occurs in `formula`, in the order of expr.h.
[[nodiscard]] std::vector<Symbol> symbols_in(std::string_view formula);

/// Collects the letters of a report while its formulas are formatted, so that the legend has each.
class Legend {
 public:
  /// Returns `formula` unchanged after noting its letters, and those that define them.
  const std::string& note(const std::string& formula);

  /// The noted symbols, in the order of expr.h.
  [[nodiscard]] std::vector<Symbol> noted() const;

  /// "where", then one entry per noted symbol; wrapped. Empty without symbols.
  [[nodiscard]] std::vector<Line> lines() const;

 private:
  std::array<bool, kSymbolCount> noted_{};
};

/// Lines of as many entries as fit a terminal, with " · " between them; `label` on the first line.
[[nodiscard]] std::vector<Line> packed_lines(std::string label,
                                             const std::vector<std::string>& entries);

/// Entries without values, "d hidden_size · V vocab_size", wrapped; `label` on the first line.
[[nodiscard]] std::vector<Line> legend_lines(std::string label, const std::vector<Symbol>& listed);

/// "t = 128 visible_keys (p + s)"
[[nodiscard]] std::string symbol_with_value(Symbol symbol, const Bindings& values);

void add_lines(std::vector<Line> lines, Document& document);

}  // namespace headroom::detail
