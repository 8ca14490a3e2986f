// CalibrationReport -> Document: the fitted efficiencies with their deviations, and every run
// beside its prediction. Its JSON is the machine's file.
#include <fmt/format.h>

#include "plan_words.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

double percent_off(double predicted, double measured) { return 100 * (predicted / measured - 1); }

Table efficiency_table(const RateFit& fit) {
  Table table;
  table.columns = {words_column("efficiency", "Efficiency"),
                   number_column("before", "Before", {"[%]", 1, 1, 100}),
                   number_column("fitted", "Fitted", {"[%]", 1, 1, 100}),
                   number_column("deviation", "Deviation", {"[%]", 1, 1, 100})};
  const auto add = [&](const char* name, double Efficiency::*part) {
    const FittedEfficiency& fitted = fit.efficiency;
    table.rows.push_back({std::string(name), fit.before.*part, fitted.fractions.*part,
                          fitted.fractions.*part * fitted.deviations.*part});
  };
  add("of peak arithmetic", &Efficiency::matrix);
  add("of memory bandwidth", &Efficiency::memory);
  add("of network bandwidth", &Efficiency::network);
  if (fit.efficiency.purpose == Purpose::train) return table;
  add("of that of memory, by attention", &Efficiency::cache);
  add("of the fixed times of kernels", &Efficiency::fixed);
  return table;
}

Table run_table(const RateFit& fit) {
  Table table;
  const NumberFormat percent{"[%]", 1};
  table.columns = {words_column("run", "Run"),
                   milliseconds_column("measured_s", "Measured"),
                   milliseconds_column("predicted_s", "Predicted"),
                   number_column("difference_percent", "Off", percent),
                   number_column("before_percent", "Before", percent),
                   number_column("memory_percent", "Memory off", {"[%]", 2}, Importance::optional)};
  for (const FittedRun& run : fit.runs) {
    Cell memory;
    if (run.measured_bytes) {
      memory = percent_off(static_cast<double>(run.predicted_bytes),
                           static_cast<double>(*run.measured_bytes));
    }
    table.rows.push_back({run.name, run.measured_s, run.predicted_s,
                          percent_off(run.predicted_s, run.measured_s),
                          percent_off(run.before_s, run.measured_s), memory});
  }
  return table;
}

}  // namespace

Document to_document(const CalibrationReport& report) {
  const FittedEfficiency& fitted = report.fit.efficiency;
  Document document;
  document.add_line("machine", report.machine.name);
  document.add_line("fitted to", fmt::format("{} ({})", with_noun(fitted.runs, "measured run"),
                                             name_of(fitted.purpose)));
  document.add_line("range", fmt::format("nine of ten other runs are expected within a factor of "
                                         "{:.3f} of their prediction",
                                         1 + fitted.range));
  document.blocks.emplace_back(run_table(report.fit));
  document.blocks.emplace_back(Heading{"Fractions of peak rates"});
  document.blocks.emplace_back(efficiency_table(report.fit));
  return document;
}

}  // namespace headroom::detail
