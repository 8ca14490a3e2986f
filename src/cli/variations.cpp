#include "variations.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "headroom/error.h"
#include "sweep_axis.h"

namespace headroom::cli {
namespace {

/// A reader scrolls through no more reports.
constexpr std::size_t kMostReports = 1000;

/// A field of CSV (RFC 4180).
std::string csv_word(const std::string& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (const char c : word) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string fields(const VariedValues& varied, bool keys) {
  std::string text;
  for (const auto& [key, value] : varied) text += csv_word(keys ? key : value) + ",";
  return text;
}

}  // namespace

void Variations::set(const std::string& key, std::vector<std::int64_t> values,
                     const Assign& assign) {
  assign(values.front());
  if (values.size() > 1) axes_.push_back({key, std::move(values), assign});
}

void Variations::visit_from(std::size_t axis, VariedValues& varied,
                            const std::function<void(const VariedValues&)>& visit) const {
  if (axis == axes_.size()) {
    visit(varied);
    return;
  }
  for (const std::int64_t value : axes_[axis].values) {
    axes_[axis].assign(value);
    varied.emplace_back(axes_[axis].key, std::to_string(value));
    visit_from(axis + 1, varied, visit);
    varied.pop_back();
  }
}

void Variations::for_each(const std::function<void(const VariedValues&)>& visit) const {
  std::size_t reports = 1;
  for (const Axis& axis : axes_) {
    if (axis.values.size() > kMostReports / reports) {
      throw_invalid_input(fmt::format("these values give more than {} reports", kMostReports),
                          "give fewer values, or use `headroom sweep`, which writes one row each");
    }
    reports *= axis.values.size();
  }
  VariedValues varied;
  visit_from(0, varied, visit);
}

void for_each_model(
    const std::vector<std::string>& models, const Variations& variations,
    const std::function<void(const std::string& model, const VariedValues& varied)>& visit) {
  for (const std::string& model : models) {
    variations.for_each([&](const VariedValues& values) {
      VariedValues varied = values;
      if (models.size() > 1) varied.insert(varied.begin(), {"model", model});
      visit(model, varied);
    });
  }
}

Option add_counts(Command command, const std::string& names, CountRange range,
                  Variations& variations, const Variations::Assign& assign,
                  const std::string& description) {
  const std::string key = names.substr(2, names.find(',') - 2);
  const auto set = [names, range, &variations, assign, key](const std::string& word) {
    const bool several =
        word.find(',') != std::string::npos || word.find("..") != std::string::npos;
    std::vector<std::int64_t> values =
        several ? parse_axis(names, word) : std::vector{parse_count(names, word)};
    for (const std::int64_t value : values) require_in_range(names, value, range);
    variations.set(key, std::move(values), assign);
  };
  return command.add_text(names, "N", set, description);
}

void JoinedReports::add(const std::string& text, const VariedValues& varied) {
  reports_.push_back({text, varied});
}

std::string JoinedReports::joined_json() const {
  std::string text = "[\n";
  for (const Report& report : reports_) {
    std::string one = report.text;
    while (one.ends_with('\n')) one.pop_back();
    text += (text.size() > 2 ? ",\n" : "") + one;
  }
  return text + "\n]\n";
}

std::string JoinedReports::joined_csv() const {
  std::string text;
  std::string last_header;
  for (const Report& report : reports_) {
    std::string_view rest = report.text;
    for (bool first = true; !rest.empty(); first = false) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string line(rest.substr(0, end));
      rest.remove_prefix(end);
      const std::string whole = fields(report.varied, first) + line;
      if (first && std::exchange(last_header, whole) == whole) continue;
      text += whole;
    }
  }
  return text;
}

std::string JoinedReports::text() const {
  if (reports_.size() == 1) return reports_.front().text;
  switch (format_) {
    case Format::json:
      return joined_json();
    case Format::csv:
      return joined_csv();
    case Format::html: {
      std::vector<std::string> pages;
      std::ranges::transform(reports_, std::back_inserter(pages), &Report::text);
      return join_pages(pages);
    }
    case Format::trace:
      throw_invalid_input("a trace holds one run", "name one model and one value of each option");
    case Format::table:
    case Format::markdown:
      break;
  }
  std::string text;
  for (const Report& report : reports_) text += (text.empty() ? "" : "\n") + report.text;
  return text;
}

void add_new_notes(const std::vector<std::string>& more, std::vector<std::string>& notes) {
  for (const std::string& note : more) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
  }
}

}  // namespace headroom::cli
