// Rows of a sweep as CSV or JSON lines: base units, the unit in the key, nothing (null) for what
// does not apply.
#pragma once

#include <string>
#include <string_view>

#include "headroom/sweep.h"

namespace headroom {

enum class SweepFormat { csv, json_lines };

class SweepWriter {
 public:
  SweepWriter(SweepFormat format, const ModelSpec& spec);

  /// The line of titles; empty for JSON lines.
  [[nodiscard]] std::string header() const;
  /// Appends one line.
  void append_row(const SweepRow& row, std::string& text);

 private:
  void start(const Workload& workload);
  [[nodiscard]] bool same_but_batch(const Workload& workload) const;
  void words(std::string& text, const char* key, std::string_view value) const;
  template <class Value>
  void number(std::string& text, const char* key, bool applies, Value value) const;

  SweepFormat format_;
  bool encodes_;
  bool caches_;
  Workload last_;
  std::string prefix_;
};

}  // namespace headroom
