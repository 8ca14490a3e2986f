// Readers of other engines' files. Internal to src/import.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headroom/compare.h"

namespace headroom::detail {

/// llama-bench -o json or jsonl: one entry per test.
[[nodiscard]] bool is_llama_bench(const nlohmann::json& entry);
[[nodiscard]] ComparedRun from_llama_bench(const nlohmann::json& entry, const std::string& where);

/// vLLM's bench latency, throughput and serve.
[[nodiscard]] bool is_vllm_bench(const nlohmann::json& entry);
[[nodiscard]] ComparedRun from_vllm_bench(const nlohmann::json& entry, const std::string& where);

/// optimum-benchmark's benchmark.json, which may hold a prefill and a decode.
[[nodiscard]] bool is_optimum_benchmark(const nlohmann::json& entry);
[[nodiscard]] std::vector<ComparedRun> from_optimum_benchmark(const nlohmann::json& entry,
                                                              const std::string& where);

/// headroom's own format, which may be written by hand for another engine.
[[nodiscard]] bool is_headroom_measurement(const nlohmann::json& entry);
[[nodiscard]] ComparedRun from_headroom_measurement(const nlohmann::json& entry,
                                                    const std::string& where);

}  // namespace headroom::detail
