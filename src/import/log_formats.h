// Readers of one engine's start-up log, line by line. Internal to src/import.
#pragma once

#include "headroom/engine_log.h"
#include "log_line.h"

namespace headroom::detail {

/// Adds what the line prints to `log`. Returns whether it is a line about weights or cache.
bool read_vllm_line(const LogLine& line, EngineLog& log);
bool read_llama_cpp_line(const LogLine& line, EngineLog& log);

}  // namespace headroom::detail
