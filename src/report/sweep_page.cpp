// SweepReport -> a page: pictures over the axes, the rows as a table, and the JSON lines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "describe.h"
#include "headroom/error.h"
#include "html.h"
#include "sweep_axes.h"
#include "terms.h"
#include "units.h"
#include "with_noun.h"

namespace headroom {
namespace detail {
namespace {

/// The rows as a JSON array of the lines that SweepWriter writes, and the defaults it found.
struct WrittenRows {
  std::string json;
  std::string defaults;
};

WrittenRows written_rows(const SweepReport& report, const Invocation& invocation) {
  SweepWriter writer(SweepFormat::json_lines, report.spec, invocation);
  std::string lines;
  for (const SweepRow& row : report.rows) writer.append_row(row, lines);
  if (lines.ends_with('\n')) lines.pop_back();
  std::ranges::replace(lines, '\n', ',');  // texts have none: JSON escapes it
  return {"[" + lines + "]", writer.defaults()};
}

/// A column of the table of rows.
struct FigureColumn {
  Column column;
  std::function<Cell(const SweepRow&)> value;
};

std::vector<FigureColumn> figure_columns(const SweepReport& report) {
  std::vector<FigureColumn> columns;
  const auto add = [&](Column column, std::function<Cell(const SweepRow&)> value) {
    columns.push_back({std::move(column), std::move(value)});
  };
  // In the unit of the least value, which is not rounded away beside much larger ones.
  const auto least = [&](Integer SweepRow::*member) {
    return std::ranges::min(report.rows, {}, member).*member;
  };
  const auto add_flops = [&](const char* key, const char* title, Integer SweepRow::*member) {
    add(number_column(key, title, in_unit(operation_unit(least(member), OperationUnit::flop), 3)),
        [member](const SweepRow& row) { return Cell{row.*member}; });
  };
  const auto add_bytes = [&](const char* key, const char* title, Integer SweepRow::*member) {
    add(number_column(key, title, in_unit(byte_unit(least(member)), 2)),
        [member](const SweepRow& row) { return Cell{row.*member}; });
  };
  const bool training = report.rows.front().workload.phase == Phase::train;
  if (!report.machine.empty()) {
    add(milliseconds_column("time_s", "Time"),
        [](const SweepRow& row) { return cell_or_none(row.time_s); });
    add(milliseconds_column("time_low_s", "From"),
        [](const SweepRow& row) { return cell_or_none(row.time_low_s); });
    add(milliseconds_column("time_high_s", "To"),
        [](const SweepRow& row) { return cell_or_none(row.time_high_s); });
  }
  add_flops("matrix_flops", "Matrix", &SweepRow::matrix_flops);
  if (training) {
    add_flops("backward_matrix_flops", "Backward", &SweepRow::backward_matrix_flops);
    add_flops("recompute_matrix_flops", "Recomputed", &SweepRow::recompute_matrix_flops);
  }
  add_flops("elementwise_flops", "Elementwise", &SweepRow::elementwise_flops);
  add_bytes("traffic_bytes", "Traffic", &SweepRow::traffic_bytes);
  add_bytes("weight_bytes", "Weights", &SweepRow::weight_bytes);
  add_bytes("activation_bytes", training ? "Saved activations" : "Peak activations",
            &SweepRow::activation_bytes);
  if (report.spec.main_stack().causal() && !training) {
    add_bytes("kv_cache_bytes", "KV-cache", &SweepRow::kv_cache_bytes);
  }
  return columns;
}

/// The first `count` rows: the values of the axes, which name them, and the figures.
Table row_table(const SweepReport& report, const std::vector<SweepAxis>& axes, std::size_t count) {
  Table table;
  for (const SweepAxis& axis : axes) {
    table.columns.push_back(axis.numbers.empty() ? words_column(axis.key, axis.title)
                                                 : number_column(axis.key, axis.title));
  }
  const std::vector<FigureColumn> figures = figure_columns(report);
  for (const FigureColumn& figure : figures) table.columns.push_back(figure.column);
  table.rows.reserve(count);
  for (std::size_t row = 0; row < count; ++row) {
    std::vector<Cell> cells;
    cells.reserve(table.columns.size());
    for (const SweepAxis& axis : axes) {
      const std::size_t place = axis.places[row];
      cells.push_back(axis.numbers.empty()
                          ? Cell{axis.values[place]}
                          : Cell{static_cast<Integer>(std::stoll(axis.values[place]))});
    }
    for (const FigureColumn& figure : figures) cells.push_back(figure.value(report.rows[row]));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// "seq 128 to 4096 (6 values)", "weights float8, int4"
std::string axis_text(const SweepAxis& axis) {
  if (axis.numbers.empty()) {
    return fmt::format("{} {}", axis.title, fmt::join(axis.values, ", "));
  }
  return fmt::format("{} {} to {} ({} values)", axis.title, axis.values.front(), axis.values.back(),
                     axis.values.size());
}

/// "seq 128 to 4096 (6 values) × batch 1 to 64 (7 values): 42 rows"
std::string grid_text(const std::vector<SweepAxis>& axes, std::size_t rows) {
  std::string text;
  for (const SweepAxis& axis : axes) text += (text.empty() ? "" : " × ") + axis_text(axis);
  return fmt::format("{}{}{}", text, text.empty() ? "" : ": ",
                     with_noun(static_cast<Integer>(rows), "row"));
}

/// "Matrix FLOPs from 22.3 to 715 GFLOP", or "… in all rows".
std::string range_text(const SweepFigure& figure) {
  const auto [low, high] = std::ranges::minmax(figure.values);
  if (figure.is_constant()) {
    return fmt::format("{} {:.4g} {} in all rows", figure.title, low, figure.unit);
  }
  return fmt::format("{} from {:.4g} to {:.4g} {}", figure.title, low, high, figure.unit);
}

std::string ranges_text(const std::vector<SweepFigure>& figures) {
  std::string text;
  for (const SweepFigure& figure : figures) {
    text += (text.empty() ? "" : " · ") + range_text(figure);
  }
  return text;
}

/// A sweep before it is a page.
class SweepPage {
 public:
  SweepPage(const SweepReport& report, const RenderOptions& options)
      : report_(report),
        options_(options),
        axes_(axes_of(report)),
        figures_(figures_of(report)),
        rows_(written_rows(report, options.invocation)),
        pictures_(pictures_of(report, axes_, figures_)) {}

  /// As many rows as fit, and the JSON if it still fits.
  [[nodiscard]] std::string page() const {
    const std::size_t all = report_.rows.size();
    const std::size_t empty = with(0, 0).size();
    const std::size_t whole = with(all, 0).size();
    const std::size_t room = kMostPageBytes - std::min(kMostPageBytes, empty + kReserve);
    const std::size_t count = std::min(all, all * room / (whole - empty + 1));
    const std::size_t used = with(count, 0).size() + kReserve;
    return with(count, kMostPageBytes - std::min(kMostPageBytes, used));
  }

 private:
  /// Bytes for sentences whose length depends on the numbers in them.
  static constexpr std::size_t kReserve = 2'000;

  [[nodiscard]] std::string with(std::size_t rows, std::size_t most_report_bytes) const {
    return to_page({.name = "sweep",
                    .document = printable(with_terms(document(rows))),
                    .report = rows_.json,
                    .pictures = pictures_,
                    .exercises = {},
                    .most_report_bytes = most_report_bytes},
                   options_.invocation);
  }

  [[nodiscard]] Document document(std::size_t rows) const {
    Document document;
    document.add_subject(report_.spec.name, describe(report_.spec));
    document.add_verdict("", ranges_text(figures_));
    document.add_line("workload", fixed_settings(report_));
    document.add_line("grid", grid_text(axes_, report_.rows.size()));
    if (!report_.machine.empty()) document.add_line("machine", report_.machine);
    if (!rows_.defaults.empty()) document.add_line("defaults", rows_.defaults);
    const std::string scope = picture_scope(report_, axes_);
    if (!scope.empty()) document.add_line("pictures", scope);
    if (rows < report_.rows.size()) {
      document.add_line("table", fmt::format("the first {} of {} rows: CSV and JSON lines have all",
                                             rows, report_.rows.size()));
    }
    document.blocks.emplace_back(row_table(report_, axes_, rows));
    return document;
  }

  const SweepReport& report_;
  const RenderOptions& options_;
  std::vector<SweepAxis> axes_;
  std::vector<SweepFigure> figures_;
  WrittenRows rows_;
  std::vector<std::string> pictures_;
};

}  // namespace
}  // namespace detail

std::string render_page(const SweepReport& report, const RenderOptions& options) {
  const auto rows = static_cast<Integer>(report.rows.size());
  if (rows == 0) throw_invalid_input("a page needs a row", "");
  if (rows > kMostPageRows) {
    throw_invalid_input(fmt::format("a page has at most {} rows, not {}",
                                    with_separators(kMostPageRows), with_separators(rows)),
                        "write CSV or JSON lines, or a smaller grid");
  }
  return detail::SweepPage(report, options).page();
}

}  // namespace headroom
