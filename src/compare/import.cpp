// Which engine wrote a file, told by what it holds.
#include "import.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "json_text.h"

namespace headroom {
namespace {

using nlohmann::json;

/// One document, or one on each line.
std::vector<json> documents_of(std::string_view text, const std::string& where) {
  try {
    return {detail::parse_json(text, where)};
  } catch (const Error&) {
    if (text.find('\n') == std::string_view::npos) throw;
  }
  std::vector<json> documents;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    documents.push_back(detail::parse_json(one, fmt::format("{}:{}", where, line)));
  }
  return documents;
}

/// The entries of a list, or the one that a document is.
std::vector<json> entries_of(const json& document) {
  if (document.is_array()) return document.get<std::vector<json>>();
  return {document};
}

void add_runs(const json& entry, const std::string& where, std::vector<Figured>& runs) {
  if (!entry.is_object()) {
    throw Error(ErrorCode::invalid_input, "is not an object", where, "take a benchmark's own file");
  }
  if (entry.contains("engine")) {
    runs.push_back(measured_from_json(entry.dump(), where));
  } else if (detail::is_llama_bench(entry)) {
    runs.push_back(detail::from_llama_bench(entry, where));
  } else if (detail::is_optimum(entry)) {
    for (Figured& run : detail::from_optimum(entry, where)) runs.push_back(std::move(run));
  } else if (detail::is_vllm(entry)) {
    runs.push_back(detail::from_vllm(entry, where));
  } else {
    throw Error(ErrorCode::invalid_input, "is no measurement that is understood", where,
                "known are llama-bench -o json or jsonl, vLLM bench latency, throughput and serve, "
                "optimum-benchmark, and headroom's own (reports/measure.schema.json)");
  }
}

}  // namespace

std::vector<Figured> import_measurements(std::string_view text, const std::string& where) {
  std::vector<Figured> runs;
  for (const json& document : documents_of(text, where)) {
    const std::vector<json> entries = entries_of(document);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      add_runs(entries[i], entries.size() == 1 ? where : fmt::format("{}/{}", where, i), runs);
    }
  }
  if (runs.empty()) {
    throw Error(ErrorCode::invalid_input, "holds no run", where, "take a benchmark's own file");
  }
  return runs;
}

}  // namespace headroom
