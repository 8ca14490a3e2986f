// Words for models and workloads, the same in every report. Internal to src/report.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "document.h"
#include "headroom/report.h"
#include "json_writer.h"

namespace headroom::detail {

/// "encoder · 12 layers · hidden 768 · heads 12 · FFN 3072 · vocab 30522"
[[nodiscard]] std::string describe(const ModelSpec& spec);

/// "prefill · batch 1 · seq 128 · float32 · eager attention"
/// `cache_type` stands in for the workload's type of the KV-cache, where it is not empty.
[[nodiscard]] std::string describe(const Workload& workload, const ModelSpec& spec,
                                   std::string_view cache_type = {});

/// "417.64 MiB": bytes in the unit that fits them.
[[nodiscard]] std::string describe_bytes(Integer bytes);

/// "1 thread", "2 threads"
[[nodiscard]] std::string describe_threads(int threads);

/// Lines for the time to first token and per output token, where there are any.
void add_token_times(const std::optional<double>& ttft_s, const std::optional<double>& tpot_s,
                     Document& document);

[[nodiscard]] std::string_view name_of(ModelKind kind) noexcept;

[[nodiscard]] Json to_json(const Workload& workload, const ModelSpec& spec);
/// With the type that the KV-cache is stored in.
[[nodiscard]] Json to_json(const Workload& workload, const ModelSpec& spec,
                           const std::optional<KvCacheUse>& cache);
[[nodiscard]] Json to_json(const Model& model);

/// The values of all symbols under `workload`, the model's own and the workload's.
[[nodiscard]] Bindings all_values(const Graph& graph, const Workload& workload);

}  // namespace headroom::detail
