// Fitted exponents and crossover lengths as tables.
#include <fmt/format.h>

#include "study_words.h"

namespace headroom::detail {
namespace {

std::vector<Cell> exponent_row(const std::string& name, const ExponentRow& row) {
  return {name,
          row.predicted,
          row.predicted_time ? Cell{*row.predicted_time} : Cell{},
          row.measured.exponent,
          row.measured.half_width_95 ? Cell{*row.measured.half_width_95} : Cell{},
          Integer{row.from},
          Integer{row.to}};
}

std::string crossing_name(const ComplexityReport& report, const CrossoverRow& row) {
  return fmt::format("{} > {}", name_of(report.layers[row.above].layer),
                     name_of(report.layers[row.below].layer));
}

/// The length, "always" for 1 or "never" for none.
Cell length_cell(const std::optional<Integer>& length) {
  if (!length) return std::string("never");
  return *length == 1 ? Cell{std::string("always")} : Cell{*length};
}

Table crossover_table(const ComplexityReport& report, const std::vector<CrossoverRow>& rows) {
  const bool measured = report.context.has_value();
  const bool predicted = !report.machine.empty();
  Table table;
  table.columns = {words_column("crossover", "Costs more"),
                   number_column("flops_from", "From s", {"by FLOPs", 0})};
  if (predicted) {
    table.columns.push_back(number_column("predicted_from", "From s", {"predicted", 0}));
  }
  if (measured) table.columns.push_back(number_column("measured_from", "From s", {"measured", 0}));
  for (const CrossoverRow& row : rows) {
    std::vector<Cell> cells{crossing_name(report, row), length_cell(row.flops)};
    if (predicted) cells.push_back(cell_or_none(row.predicted_time));
    if (measured) cells.push_back(cell_or_none(row.measured_time));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

void add_exponents(const ComplexityReport& report, Document& document) {
  Table table;
  table.columns = {words_column("layer", "Exponent of s in"),
                   number_column("theory", "FLOPs", {"", 2}),
                   number_column("predicted", "Predicted time", {"", 2}),
                   number_column("measured", "Measured time", {"", 2}),
                   number_column("half_width_95", "±95 %", {"", 2}),
                   number_column("from", "From s"),
                   number_column("to", "To s")};
  for (const LayerStudy& study : report.layers) {
    const std::string& name = name_of(study.layer);
    if (study.core_exponent)
      table.rows.push_back(exponent_row(name + ", token mixing", *study.core_exponent));
    if (study.exponent) table.rows.push_back(exponent_row(name + ", whole layer", *study.exponent));
  }
  document.blocks.push_back(Heading{fmt::format(
      "Exponents, fitted where the leading term is at least {:.0f} % of FLOPs and traffic, beyond "
      "the cache if enough lengths are",
      100 * kAsymptoticShare)});
  if (table.rows.empty()) {
    document.add_line(
        "none", fmt::format("a fit needs {} such lengths: choose longer ones", kFewestFitPoints));
    return;
  }
  document.blocks.push_back(std::move(table));
}

void add_crossovers(const ComplexityReport& report, Document& document) {
  if (!report.crossovers.empty()) {
    document.blocks.push_back(Heading{"Crossover lengths, whole layer"});
    document.blocks.push_back(crossover_table(report, report.crossovers));
  }
  if (report.core_crossovers.empty()) return;
  document.blocks.push_back(Heading{"Crossover lengths, token mixing"});
  document.blocks.push_back(crossover_table(report, report.core_crossovers));
}

}  // namespace headroom::detail
