// Terms and units that counts of a figure disagree on. Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/claim.h"

namespace headroom::detail {

/// A term, and the choice that it makes: two terms of one choice exclude each other.
struct ClaimOption {
  ClaimTerm term;
  std::string choice;
};

/// The terms of `subject`, with values, without those of value 0; terms of equal value become one,
/// named after both.
[[nodiscard]] std::vector<ClaimOption> claim_options(const AnalyzeReport& report, Subject subject,
                                                     const Bindings& values);

/// The units of `subject`, the figure's own first.
[[nodiscard]] std::vector<ClaimScale> claim_scales(const AnalyzeReport& report, Subject subject);

}  // namespace headroom::detail
