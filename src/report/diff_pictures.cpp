// Two models side by side: their figures, and the components that make the difference.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "describe.h"
#include "diff_rows.h"
#include "picture.h"
#include "pictures.h"
#include "units.h"

namespace headroom::detail {
namespace {

/// "k", "M", …
Unit count_unit(Integer count) {
  constexpr std::string_view kFlop = "FLOP";
  Unit unit = operation_unit(count, OperationUnit::flop);
  unit.name.remove_suffix(kFlop.size());
  if (unit.name.empty()) unit.name = "parameters";
  return unit;
}
Unit flop_unit_of(Integer flops) { return operation_unit(flops, OperationUnit::flop); }

std::string count_text(Integer count) { return with_separators(count); }
std::string flop_text(Integer flops) {
  const Unit unit = flop_unit_of(flops);
  return fmt::format("{} {}", cell_text(flops, in_unit(unit, 2)), unit.name);
}

/// A row of the report that the picture shows.
struct KeyFigure {
  std::string_view quantity;
  const char* name;
  std::string (*text)(Integer value);
};

constexpr std::array<KeyFigure, 8> kKeyFigures{
    {{"parameters", "parameters", count_text},
     {"weight_bytes", "weights", describe_bytes},
     {"matrix_flops", "matrix FLOPs", flop_text},
     {"backward_matrix_flops", "backward matrix FLOPs", flop_text},
     {"peak_activation_bytes", "peak activations", describe_bytes},
     {"saved_activation_bytes", "saved activations", describe_bytes},
     {"kv_cache_bytes", "KV-cache", describe_bytes},
     {"kv_cache_bytes_per_token", "KV-cache per token", describe_bytes}}};

/// Two bars of each figure, in percent of the longer one.
std::string figure_bars(const DiffReport& report) {
  const std::string& a = report.a.model.spec.name;
  const std::string b = report.b.model.spec.name == a ? a + " (second)" : report.b.model.spec.name;
  Bars content{fmt::format("Figures of {} and {}", a, b),
               "Each figure in percent of the larger of both.",
               {"of the larger one [%]"},
               {},
               {}};
  const std::vector<DiffRow> rows = figure_rows(report);
  for (const KeyFigure& figure : kKeyFigures) {
    const auto row = std::ranges::find(rows, figure.quantity, &DiffRow::quantity);
    if (row == rows.end() || (!row->a && !row->b)) continue;
    const auto largest = static_cast<double>(std::max(row->a.value_or(0), row->b.value_or(0)));
    if (!(largest > 0)) continue;
    const auto add = [&](const char* name, const std::string& model,
                         const std::optional<Integer>& value) {
      const std::string text = value ? figure.text(*value) : "–";
      content.bars.push_back({name,
                              {{model, 100 * static_cast<double>(value.value_or(0)) / largest,
                                fmt::format("{}, {}: {}", model, figure.name, text)}},
                              text});
    };
    add(figure.name, a, row->a);
    add("", b, row->b);
  }
  return bars(content);
}

using CountOf = Integer (*)(const ComponentFigures& component);

/// Both models' amounts by component, in the order of the first.
std::vector<std::pair<std::string, Integer>> component_differences(const DiffReport& report,
                                                                   CountOf count_of) {
  std::vector<std::pair<std::string, Integer>> differences;
  const auto add = [&](const AnalyzeReport& side, Integer sign) {
    for (std::size_t i = 0; i < side.analysis.components.size(); ++i) {
      const std::string name(name_of(side.analysis.components[i].component));
      auto found = std::ranges::find(differences, name, &std::pair<std::string, Integer>::first);
      if (found == differences.end()) found = differences.insert(found, {name, 0});
      found->second += sign * count_of(side.figures.components[i]);
    }
  };
  add(report.a, -1);
  add(report.b, 1);
  std::erase_if(differences, [](const auto& difference) { return difference.second == 0; });
  return differences;
}

std::string difference_bars(const DiffReport& report, const char* what, CountOf count_of,
                            std::string (*text_of)(Integer), Unit (*unit_of)(Integer)) {
  auto differences = component_differences(report, count_of);
  const auto size = [](const auto& difference) {
    return difference.second < 0 ? -difference.second : difference.second;
  };
  std::ranges::stable_sort(differences, std::ranges::greater(), size);
  Integer sum = 0;
  for (const auto& [name, difference] : differences) sum += difference;
  const auto signed_text = [&](Integer value) {
    return (value < 0 ? "−" : "+") + text_of(value < 0 ? -value : value);
  };
  Bars content{fmt::format("{} by component: {} less {}", what, report.b.model.spec.name,
                           report.a.model.spec.name),
               fmt::format("All together {}.", sum == 0 ? "0" : signed_text(sum)),
               {"difference"},
               {},
               {}};
  if (differences.empty()) return {};
  const Integer largest = size(differences.front());
  const Unit unit = unit_of(largest);
  content.axis.title = fmt::format("difference [{}]", unit.name);
  for (const auto& [name, difference] : differences) {
    content.bars.push_back({name,
                            {{difference < 0 ? "less" : "more",
                              static_cast<double>(difference) / static_cast<double>(unit.size),
                              fmt::format("{}: {}", name, signed_text(difference))}},
                            signed_text(difference)});
  }
  return bars(content);
}

}  // namespace

std::vector<std::string> pictures_of(const DiffReport& report) {
  return {figure_bars(report),
          difference_bars(
              report, "Parameters",
              [](const ComponentFigures& component) { return component.parameters; }, count_text,
              count_unit),
          difference_bars(
              report, "Matrix FLOPs",
              [](const ComponentFigures& component) { return component.forward.matrix_flops; },
              flop_text, flop_unit_of)};
}

}  // namespace headroom::detail
