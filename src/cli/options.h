// Options that several commands share, and how they are bound to typed values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/report.h"

namespace headroom::cli {

/// A word on the command line and its value. Words after the first for one value are spellings that
/// help does not list.
template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// Throws CLI::ValidationError, with the closest word as a hint.
[[noreturn]] void refuse_choice(const std::string& option, const std::string& word,
                                const std::vector<std::string>& known);

/// Adds an option that takes one of `choices`. Its type name is the list of words, which help shows
/// and shell completion reads.
template <class Value, class Target>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Target& target,
                        Choices<Value> choices, const std::string& description) {
  std::string listed;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool another_spelling = i > 0 && choices[i].second == choices[i - 1].second;
    if (!another_spelling) listed += (listed.empty() ? "" : "|") + choices[i].first;
  }
  const auto set = [&target, name, choices = std::move(choices)](const std::string& word) {
    std::vector<std::string> known;
    for (const auto& [text, value] : choices) {
      if (text == word) {
        target = value;
        return;
      }
      known.push_back(text);
    }
    refuse_choice(name, word, known);
  };
  return app.add_option_function<std::string>(name, set, description)->type_name(listed);
}

/// Adds an option that takes a whole number of 64 bits. (CLI11 2.1 would clamp a larger one.)
CLI::Option* add_count(CLI::App& app, const std::string& name,
                       std::function<void(std::int64_t)> set, const std::string& description);

struct CountRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
/// The same, refusing what is not in `range`.
CLI::Option* add_count(CLI::App& app, const std::string& name, CountRange range,
                       std::function<void(std::int64_t)> set, const std::string& description);

/// Where a report goes and in which form.
struct OutputOptions {
  Format format = Format::table;
  std::string file;  ///< empty: standard output
  bool quiet = false;
};

void add_output_options(CLI::App& app, OutputOptions& options);
/// Lengths, types and attention: what any forward pass needs.
void add_inference_options(CLI::App& app, WorkloadRequest& request);
/// The same, phases and training as well, and the type of the KV-cache.
void add_workload_options(CLI::App& app, WorkloadRequest& request);
/// The same, with every type and policy of a KV-cache.
void add_workload_options(CLI::App& app, WorkloadRequest& request, KvCacheRequest& kv_cache);

/// How a report is to be rendered for this output: a terminal's width and colours, or neither.
[[nodiscard]] RenderOptions render_options(const OutputOptions& options, Detail detail);

/// Writes `text` to the file, whole or not at all, or to standard output; notes go to standard
/// error unless quiet. Throws Error{missing_resource}.
void write_output(const std::string& text, const std::vector<std::string>& notes,
                  const OutputOptions& options);

}  // namespace headroom::cli
