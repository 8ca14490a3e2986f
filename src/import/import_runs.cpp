// Recognises the engine of a file by its keys.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats.h"
#include "headroom/compare.h"
#include "headroom/error.h"
#include "json_text.h"

namespace headroom {
namespace {

using nlohmann::json;

/// The JSON document, or those of JSON lines.
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

/// The entries of a list; an object is one entry.
std::vector<json> entries_of(const json& document) {
  if (document.is_array()) return document.get<std::vector<json>>();
  return {document};
}

std::vector<ComparedRun> runs_of(const json& entry, const std::string& where) {
  if (!entry.is_object()) {
    throw Error(ErrorCode::invalid_input, "is not an object", where,
                "give the file that a benchmark wrote");
  }
  if (detail::is_headroom_measurement(entry)) {
    return {detail::from_headroom_measurement(entry, where)};
  }
  if (detail::is_llama_bench(entry)) return {detail::from_llama_bench(entry, where)};
  if (detail::is_optimum_benchmark(entry)) return detail::from_optimum_benchmark(entry, where);
  if (detail::is_vllm_bench(entry)) return {detail::from_vllm_bench(entry, where)};
  throw Error(ErrorCode::invalid_input, "is a measurement of an unknown format", where,
              "known formats: llama-bench json and jsonl; vLLM bench latency, throughput and "
              "serve; optimum-benchmark; headroom measure (reports/measure.schema.json)");
}

}  // namespace

std::vector<ComparedRun> import_runs(std::string_view text, const std::string& where) {
  std::vector<ComparedRun> runs;
  for (const json& document : documents_of(text, where)) {
    const std::vector<json> entries = entries_of(document);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string place = entries.size() == 1 ? where : fmt::format("{}/{}", where, i);
      for (ComparedRun& run : runs_of(entries[i], place)) runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) {
    throw Error(ErrorCode::invalid_input, "holds no run", where,
                "give the file that a benchmark wrote");
  }
  return runs;
}

}  // namespace headroom
