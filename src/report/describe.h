// Words for models and workloads, the same in every report. Internal to src/report.
#pragma once

#include <string>

#include "headroom/report.h"
#include "json_writer.h"

namespace headroom::detail {

/// "encoder · 12 layers · hidden 768 · heads 12 · FFN 3072 · vocab 30522"
[[nodiscard]] std::string describe(const ModelSpec& spec);

/// "prefill · batch 1 · seq 128 · float32 · eager attention"
[[nodiscard]] std::string describe(const Workload& workload, const ModelSpec& spec);

/// "417.64 MiB": bytes in the unit that fits them.
[[nodiscard]] std::string describe_bytes(Integer bytes);

[[nodiscard]] std::string_view name_of(ModelKind kind) noexcept;

[[nodiscard]] Json to_json(const Workload& workload, const ModelSpec& spec);
[[nodiscard]] Json to_json(const Model& model);

/// The values of all symbols under `workload`, the model's own and the workload's.
[[nodiscard]] Bindings all_values(const Graph& graph, const Workload& workload);

}  // namespace headroom::detail
