#include "headroom/engine_log.h"

#include <algorithm>

#include "headroom/error.h"
#include "log_formats.h"

namespace headroom {
namespace {

/// Calls `read(line)` for each line until it returns true. Returns whether one did.
template <class Read>
bool any_line(std::string_view text, Read&& read) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (read(detail::LogLine(line))) return true;
  }
  return false;
}

/// The engine of the first line that one of the readers knows.
std::optional<LogEngine> engine_of(std::string_view text) {
  std::optional<LogEngine> engine;
  (void)any_line(text, [&](const detail::LogLine& line) {
    EngineLog ignored;
    if (detail::read_vllm_line(line, ignored)) engine = LogEngine::vllm;
    if (detail::read_llama_cpp_line(line, ignored)) engine = LogEngine::llama_cpp;
    return engine.has_value();
  });
  return engine;
}

/// A mapped buffer spans the file from its first tensor to its last, also those that another buffer
/// copies.
void count_tensors_once(EngineLog& log) {
  if (!log.file_bytes || !log.weight_bytes) return;
  constexpr double kRounding = 1.005;  // two digits of GiB
  if (*log.weight_bytes > kRounding * *log.file_bytes) log.weight_bytes = log.file_bytes;
}

}  // namespace

bool is_engine_log(std::string_view text) { return engine_of(text).has_value(); }

EngineLog read_engine_log(std::string_view text, const std::string& where) {
  const std::optional<LogEngine> engine = engine_of(text);
  if (!engine) {
    throw Error(ErrorCode::invalid_input, "prints neither weights nor KV-cache", where,
                "give the whole start-up log of vLLM or llama.cpp");
  }
  EngineLog log;
  log.engine = *engine;
  (void)any_line(text, [&](const detail::LogLine& line) {
    switch (*engine) {
      case LogEngine::vllm:
        (void)detail::read_vllm_line(line, log);
        break;
      case LogEngine::llama_cpp:
        (void)detail::read_llama_cpp_line(line, log);
        break;
    }
    return false;
  });
  count_tensors_once(log);
  return log;
}

}  // namespace headroom
