// Quantities of two models side by side. Internal to src/report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/report.h"

namespace headroom::detail {

/// One quantity of both models; empty if a model lacks it.
struct DiffRow {
  std::string quantity;
  std::optional<Integer> a;
  std::optional<Integer> b;
};

/// Parameters, FLOPs and bytes, in the order of the report.
[[nodiscard]] std::vector<DiffRow> figure_rows(const DiffReport& report);

}  // namespace headroom::detail
