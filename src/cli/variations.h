// Options with several values: the command then reports every combination.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "options.h"

namespace headroom::cli {

/// The varied settings of one report, such as {"batch", "4"}.
using VariedValues = std::vector<std::pair<std::string, std::string>>;

/// Settings that were given several values.
class Variations {
 public:
  using Assign = std::function<void(std::int64_t)>;

  /// Takes the values of the setting `key`: assigns the only one, or remembers several.
  void set(const std::string& key, std::vector<std::int64_t> values, const Assign& assign);

  /// True if no setting has several values.
  [[nodiscard]] bool empty() const noexcept { return axes_.empty(); }

  /// Calls `visit` once per combination of values, after assigning them. The last setting varies
  /// fastest. Throws Error{invalid_input} for more combinations than a report can hold.
  void for_each(const std::function<void(const VariedValues&)>& visit) const;

 private:
  struct Axis {
    std::string key;
    std::vector<std::int64_t> values;
    Assign assign;
  };
  void visit_from(std::size_t axis, VariedValues& varied,
                  const std::function<void(const VariedValues&)>& visit) const;

  std::vector<Axis> axes_;
};

/// Calls `visit` with each of `models` and each combination of `variations`. Several models are a
/// varied setting, too.
void for_each_model(
    const std::vector<std::string>& models, const Variations& variations,
    const std::function<void(const std::string& model, const VariedValues& varied)>& visit);

/// Adds an option that takes a count, or several: "1,2,8" or "1..64:x2".
Option add_counts(Command command, const std::string& names, CountRange range,
                  Variations& variations, const Variations::Assign& assign,
                  const std::string& description);

/// Rendered reports of one command, one after the other: a JSON list, one CSV table with a column
/// per varied setting, one page, or texts with an empty line between them.
class JoinedReports {
 public:
  explicit JoinedReports(Format format) : format_(format) {}
  void add(const std::string& text, const VariedValues& varied);
  /// All reports. A single one is as it was rendered.
  [[nodiscard]] std::string text() const;

 private:
  struct Report {
    std::string text;
    VariedValues varied;
  };
  [[nodiscard]] std::string joined_json() const;
  [[nodiscard]] std::string joined_csv() const;

  Format format_;
  std::vector<Report> reports_;
};

/// Appends those of `more` that `notes` does not have yet.
void add_new_notes(const std::vector<std::string>& more, std::vector<std::string>& notes);

}  // namespace headroom::cli
