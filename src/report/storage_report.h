// How weights are stored, and the types of a run, in words and JSON. Internal to src/report.
#pragma once

#include <string>

#include "headroom/plan.h"
#include "headroom/storage.h"
#include "json_writer.h"

namespace headroom::detail {

/// "64.20 GiB · 4.72 bits per weight · MXFP4 (config.json)", and what else fills the files:
/// "not counted: 1.81 GiB, multi-token prediction layer".
[[nodiscard]] std::string describe_storage(const StoredWeights& storage, Integer bytes);

/// Origin, bytes, bits per weight, groups, and tensors of the files that are no weights.
[[nodiscard]] Json to_json(const StoredWeights& storage, Integer bytes);

/// "weights int4 · activations bfloat16 · arithmetic bfloat16 · KV-cache float8". An empty
/// `cache_type` stands for a model without a cache.
[[nodiscard]] std::string describe_types(const Workload& workload, std::string_view cache_type);

/// With the type of messages between ranks.
[[nodiscard]] std::string describe_types(const PlanQuery& query);
/// Types of those messages: "bfloat16", or "bfloat16 (float8 to experts)".
[[nodiscard]] std::string describe_communication(const PlanQuery& query);

}  // namespace headroom::detail
