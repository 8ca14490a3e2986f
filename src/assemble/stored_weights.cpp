// Weight bytes of a model's own files, component by component.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyze_model.h"
#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// Types that a workload's dtype can express.
constexpr std::array<std::string_view, 4> kPlainTypes{"F32", "F16", "BF16", "F64"};

bool is_plain(const TypeRow& row) {
  return std::ranges::find(kPlainTypes, std::string_view(row.type)) != kPlainTypes.end();
}

/// Replaces the weight bytes, unless the files are not quantised or have unexplained tensors.
void replace_weight_bytes(AnalyzeReport& report, const Inspection& inspection) {
  const bool quantised = !std::ranges::all_of(inspection.types, is_plain);
  if (!quantised || !inspection.reconciliation || !inspection.is_explained()) return;
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
      fmt::format("weights as stored in the files, {:.2f} bits each; traffic and time assume {} "
                  "weights",
                  report.stored_bits_per_weight.value_or(0), name_of(report.workload.dtype)));
}

}  // namespace

void apply_stored_weights(AnalyzeReport& report) {
  if (report.model.weight_files.empty()) return;
  try {
    replace_weight_bytes(report, inspect(report.model.weight_files));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_input) throw;
    report.notes.push_back(
        fmt::format("the weights next to the config cannot be read: {}", error.what()));
  }
}

}  // namespace headroom::detail
