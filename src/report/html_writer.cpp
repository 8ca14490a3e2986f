// Document -> the content of an <article>.
#include <fmt/format.h>

#include <utility>

#include "html.h"
#include "visit.h"

namespace headroom::detail {
namespace {

/// The value in its base unit, for scripts and copies; nothing for words and unknown values.
std::string value_attribute(const Cell& cell) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::string(); },
                 [](const std::string&) { return std::string(); },
                 [](const Verdict&) { return std::string(); },
                 [](Integer value) { return fmt::format(" data-value=\"{}\"", to_string(value)); },
                 [](double value) { return fmt::format(" data-value=\"{}\"", value); }},
      cell);
}

/// The class of an outcome, after a blank.
std::string_view outcome_class(Outcome outcome) {
  switch (outcome) {
    case Outcome::good:
      return " good";
    case Outcome::bad:
      return " bad";
    case Outcome::none:
      break;
  }
  return "";
}

std::string html_cell(const Cell& cell, const Column& column, bool is_row_name) {
  std::string kind = column.alignment == Alignment::left ? "words" : "number";
  if (const auto* const verdict = std::get_if<Verdict>(&cell)) {
    kind += outcome_class(verdict->outcome);
  }
  const std::string_view tag = is_row_name ? "th scope=\"row\"" : "td";
  return fmt::format("<{} class=\"{}\"{}>{}</{}>", tag, kind, value_attribute(cell),
                     html_escaped(cell_text(cell, column.format)), tag.substr(0, 2));
}

std::string html_table_head(const Table& table) {
  std::string result = "<thead><tr>";
  for (const Column& column : table.columns) {
    const std::string_view kind = column.alignment == Alignment::left ? "words" : "number";
    result += fmt::format("<th scope=\"col\" class=\"{}\" data-key=\"{}\">{}", kind,
                          html_escaped(column.key), html_escaped(column.title));
    if (!column.format.unit_label.empty()) {
      result +=
          fmt::format(" <span class=\"unit\">{}</span>", html_escaped(column.format.unit_label));
    }
    result += "</th>";
  }
  return result + "</tr></thead>\n";
}

/// Rows in a region that scrolls, which the keyboard reaches.
std::string html_table(const Table& table) {
  const std::string name = table.columns.empty() ? "" : html_escaped(table.columns.front().title);
  std::string result = fmt::format(
      "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"Table by {}\"><table>\n",
      name.empty() ? "row" : name);
  result += html_table_head(table) + "<tbody>\n";
  const std::size_t first_total = table.rows.size() - table.total_rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    result += row >= first_total ? "<tr class=\"total\">" : "<tr>";
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      result += html_cell(table.rows[row][column], table.columns[column], column == 0);
    }
    result += "</tr>\n";
  }
  return result + "</tbody></table></div>\n";
}

std::string html_formula(const Formula& formula) {
  std::string result =
      fmt::format("<figure class=\"formula\"><figcaption>{}</figcaption>\n<pre tabindex=\"0\">",
                  html_escaped(formula.name));
  for (const std::string& step : formula.steps) result += "= " + html_escaped(step) + "\n";
  return result + "</pre></figure>\n";
}

/// Writes the blocks; consecutive lines are one list of terms.
class HtmlWriter {
 public:
  explicit HtmlWriter(const PageContent& content) : content_(content) {}

  std::string write() && {
    const std::vector<Block>& blocks = content_.document.blocks;
    const Line* const title = subject_of(content_.document);
    write_head(title);
    for (const Block& block : blocks) {
      const auto* const line = std::get_if<Line>(&block);
      if (line != nullptr && (line == title || line->role == LineRole::verdict)) continue;
      if (line == nullptr) close_list();
      if (std::holds_alternative<Table>(block)) write_pictures();
      std::visit(*this, block);
    }
    close_list();
    write_pictures();
    for (const std::string& exercise : content_.exercises) result_ += exercise;
    return std::move(result_);
  }

  void operator()(const Heading& heading) {
    result_ += fmt::format("<h3>{}</h3>\n", html_escaped(heading.text));
  }
  void operator()(const Line& line) {
    if (line.label.empty() && !in_list_) {
      result_ += fmt::format("<p>{}</p>\n", html_escaped(line.text));
      return;
    }
    if (!in_list_) result_ += "<dl>\n";
    in_list_ = true;
    if (!line.label.empty()) result_ += fmt::format("<dt>{}</dt>", html_escaped(line.label));
    result_ += fmt::format("<dd>{}</dd>\n", html_escaped(line.text));
  }
  void operator()(const Table& table) { result_ += html_table(table); }
  void operator()(const Formula& formula) { result_ += html_formula(formula); }

 private:
  void write_head(const Line* title) {
    if (title != nullptr) {
      result_ += fmt::format("<h2>{}</h2>\n<p class=\"subject\">{}</p>\n",
                             html_escaped(title->label), html_escaped(title->text));
    } else {
      result_ += fmt::format("<h2>{}</h2>\n", html_escaped(content_.name));
    }
    for (const Block& block : content_.document.blocks) {
      const auto* const line = std::get_if<Line>(&block);
      if (line == nullptr || line->role != LineRole::verdict) continue;
      result_ += fmt::format(
          "<p class=\"verdict{}\">{}{}</p>\n", outcome_class(line->outcome),
          line->label.empty() ? "" : fmt::format("<b>{}</b> ", html_escaped(line->label)),
          html_escaped(line->text));
    }
  }

  void write_pictures() {
    if (std::exchange(has_pictures_, true)) return;
    if (content_.pictures.empty()) return;
    result_ += "<div class=\"pictures\">\n";
    for (const std::string& picture : content_.pictures) result_ += picture;
    result_ += "</div>\n";
  }

  void close_list() {
    if (std::exchange(in_list_, false)) result_ += "</dl>\n";
  }

  const PageContent& content_;
  std::string result_;
  bool in_list_ = false;
  bool has_pictures_ = false;
};

}  // namespace

const Line* subject_of(const Document& document) {
  for (const Block& block : document.blocks) {
    const auto* const line = std::get_if<Line>(&block);
    if (line != nullptr && line->role == LineRole::subject) return line;
  }
  return nullptr;
}

std::string to_html(const PageContent& content) { return HtmlWriter(content).write(); }

}  // namespace headroom::detail
