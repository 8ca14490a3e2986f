// Terms that a report explains under its tables.
#include <doctest/doctest.h>

#include <set>

#include "document.h"
#include "terms.h"
#include "text_table.h"

using namespace headroom;
using namespace headroom::detail;

namespace {

Document with_plan(const std::string& plan) {
  Table table;
  table.columns = {number_column("mfu_percent", "MFU"), words_column("plan", "Plan")};
  table.rows = {{29.6, plan}};
  return {{table}};
}

/// The lines behind the last table.
std::string terms_under(Document document) {
  std::string text;
  for (const auto& block : with_terms(std::move(document)).blocks) {
    const auto* const line = std::get_if<Line>(&block);
    if (std::holds_alternative<Table>(block)) text.clear();
    if (line == nullptr || line->role == LineRole::subject) continue;
    if (line->label == "terms" || line->label.empty()) text += line->text + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("terms of column titles and cells are explained under the table") {
  CHECK(terms_under(with_plan("pp 8 · ZeRO 2")) ==
        "MFU: model FLOPs over the peak of the activations' type · pp: pipeline stages\n"
        "ZeRO: replicas share optimizer states (1), gradients (2), weights (3)\n");
}

TEST_CASE("a term is a whole word: no option, no part of a name") {
  CHECK(terms_under(with_plan("--tp 4 group_tp stop MFUs")) ==
        "MFU: model FLOPs over the peak of the activations' type\n");
}

TEST_CASE("a table fitted to a width has the columns that it shows there") {
  Table table;
  table.columns = {words_column("plan", "Plan"),
                   number_column("mfu_percent", "MFU", {}, Importance::optional),
                   number_column("bubble_percent", "Bubble", {}, Importance::optional)};
  table.rows = {{"tp 8", 29.6, 1.5}};
  const auto terms_at = [&table](std::size_t width) {
    return terms_under({{fitted_to(table, width)}});
  };
  const std::string tp = "tp: tensor parallelism\n";
  const std::string mfu = "MFU: model FLOPs over the peak of the activations' type · " + tp;
  CHECK(terms_at(4) == tp);
  CHECK(terms_at(10) == mfu);
  CHECK(fitted_to(table, 10).rows.front().size() == 2);
  CHECK(fitted_to(table, 0).columns.size() == 3);
}

TEST_CASE("a term is explained once, and a report without terms has no line") {
  Document document = with_plan("one device");
  document.blocks.push_back(Table(std::get<Table>(document.blocks.front())));
  document = with_terms(std::move(document));
  CHECK(document.blocks.size() == 3);
  CHECK(terms_under({{Line{"total", "12 parameters"}}}).empty());
}

TEST_CASE("a model's name is no term") {
  Document document;
  document.add_subject("tp", "decoder");
  CHECK(terms_under(document).empty());
}

TEST_CASE("terms of lines after the last table are explained at the end") {
  Document document;
  document.add_line("TTFT", "5 ms");
  CHECK(terms_under(document) == "TTFT: time to the first token\n");
}

TEST_CASE("each term has one meaning") {
  std::set<std::string_view> names;
  for (const GlossaryTerm& term : terms()) {
    CHECK(names.insert(term.name).second);
    CHECK_FALSE(term.meaning.empty());
  }
}
