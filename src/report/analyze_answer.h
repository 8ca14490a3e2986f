// The figures of `analyze` that most readers come for, in one line.
#pragma once

#include <string>

#include "headroom/report.h"

namespace headroom::detail {

/// "109,482,240 parameters · 22.348 GFLOP · weights 417.64 MiB · peak activations 9.00 MiB": in
/// training the FLOPs of a step and the bytes saved for backward; on a machine also the time.
[[nodiscard]] std::string answer_of(const AnalyzeReport& report);

/// "22.348 GFLOP" or "11.174 GMAC", in the unit of the report's convention.
[[nodiscard]] std::string describe_operations(const AnalyzeReport& report, Integer count);

/// Operations of a training step's GEMMs: forward, backward and recomputation.
[[nodiscard]] Integer step_operations(const Figures& figures);

}  // namespace headroom::detail
