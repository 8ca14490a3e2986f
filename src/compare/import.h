// Readers of other engines' files. Internal to src/compare.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "headroom/compare.h"

namespace headroom::detail {

/// llama-bench -o json or jsonl: one entry a test.
[[nodiscard]] bool is_llama_bench(const nlohmann::json& entry);
[[nodiscard]] Figured from_llama_bench(const nlohmann::json& entry, const std::string& where);

/// vLLM's bench latency, throughput and serve.
[[nodiscard]] bool is_vllm(const nlohmann::json& entry);
[[nodiscard]] Figured from_vllm(const nlohmann::json& entry, const std::string& where);

/// optimum-benchmark's benchmark.json, which may hold a prefill and a decode.
[[nodiscard]] bool is_optimum(const nlohmann::json& entry);
[[nodiscard]] std::vector<Figured> from_optimum(const nlohmann::json& entry,
                                                const std::string& where);

}  // namespace headroom::detail
