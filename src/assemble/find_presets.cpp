// Search of presets and machines.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "family.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "similar.h"

namespace headroom {
namespace {

using detail::contains_ignoring_case;

bool fits(const Preset& preset, const std::string& text) {
  const auto contains = [&](const std::string& name) { return contains_ignoring_case(name, text); };
  return contains(preset.name) || contains(preset.repository) ||
         std::ranges::any_of(preset.aliases, contains);
}

/// The family of a model_type.
const detail::Family& require_family(const std::string& model_type) {
  if (const detail::Family* family = detail::find_family(model_type)) return *family;
  std::vector<std::string> known;
  for (const detail::Family& family : detail::families()) {
    known.insert(known.end(), family.model_types.names.begin(), family.model_types.names.end());
  }
  const std::string guess = detail::did_you_mean(model_type, known);
  throw Error(ErrorCode::invalid_input, "is not a model_type of any family", model_type,
              guess.empty() ? "a preset's type is in the list of presets" : guess);
}

[[noreturn]] void refuse_empty(const PresetQuery& query) {
  std::vector<std::string> known;
  for (const Preset& preset : list_presets()) {
    known.push_back(preset.name);
    known.push_back(preset.name.substr(0, preset.name.find('-')));
  }
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::string guess = detail::did_you_mean(detail::lower_case(query.text), known);
  throw Error(ErrorCode::invalid_input, "no preset matches", query.text,
              guess.empty() ? "`headroom presets` lists all" : guess);
}

std::string_view name_of_preset(const PresetSummary& summary) { return summary.preset.name; }

void sort(std::vector<PresetSummary>& presets, PresetOrder order) {
  switch (order) {
    case PresetOrder::name:
      std::ranges::sort(presets, {}, name_of_preset);
      return;
    case PresetOrder::parameters:
      break;
  }
  std::ranges::stable_sort(presets, {}, &PresetSummary::parameters);
}

}  // namespace

PresetsReport find_presets(const PresetQuery& query) {
  std::vector<Preset> named = list_presets();
  std::erase_if(named, [&](const Preset& preset) { return !fits(preset, query.text); });
  PresetsReport report = make_presets_report(named);
  if (!query.family.empty()) {
    const detail::Family& family = require_family(query.family);
    std::erase_if(report.presets, [&](const PresetSummary& summary) {
      return detail::find_family(summary.model.spec.model_type) != &family;
    });
  }
  std::erase_if(report.presets, [&](const PresetSummary& summary) {
    return query.max_parameters && summary.parameters > *query.max_parameters;
  });
  if (report.presets.empty()) refuse_empty(query);
  sort(report.presets, query.order);
  return report;
}

std::vector<MachineProfile> find_machines(const std::string& text) {
  std::vector<MachineProfile> machines = catalogue_machines();
  std::vector<std::string> known;
  std::ranges::transform(machines, std::back_inserter(known), &MachineProfile::name);
  std::erase_if(machines, [&](const MachineProfile& machine) {
    return !contains_ignoring_case(machine.name, text);
  });
  if (!machines.empty()) return machines;
  const std::string guess = detail::did_you_mean(detail::lower_case(text), known);
  throw Error(ErrorCode::invalid_input, "no machine matches", text,
              guess.empty() ? "`headroom machines` lists all" : guess);
}

}  // namespace headroom
