// Weights as the model's own files hold them, in the place of a number of bytes for each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headroom/report.h"

namespace headroom {
namespace {

/// Types that --dtype can say as well.
constexpr std::array<std::string_view, 4> kPlainTypes{"F32", "F16", "BF16", "F64"};

bool is_plain(const TypeRow& row) {
  return std::ranges::find(kPlainTypes, std::string_view(row.type)) != kPlainTypes.end();
}

}  // namespace

bool use_stored_weights(AnalyzeReport& report, const Inspection& inspection) {
  const bool quantised = !std::ranges::all_of(inspection.types, is_plain);
  if (!quantised || !inspection.reconciliation || !inspection.is_explained()) return false;
  Integer sum = 0;
  for (std::size_t i = 0; i < report.analysis.components.size(); ++i) {
    const std::string name = name_of(report.analysis.components[i].component);
    const auto row = std::ranges::find(inspection.components, name, &ComponentRow::component);
    Integer& bytes = report.figures.components[i].weight_bytes;
    bytes = row == inspection.components.end() ? Integer{0} : row->totals.bytes;
    sum = checked_add(sum, bytes);
  }
  report.figures.weight_bytes = sum;
  report.stored_bits_per_weight = inspection.weights.bits_per_value();
  report.notes.push_back(
      fmt::format("weights take what they take in the files, {:.2f} bits each; traffic and time "
                  "are those of {} weights",
                  report.stored_bits_per_weight.value_or(0), name_of(report.workload.dtype)));
  return true;
}

}  // namespace headroom
