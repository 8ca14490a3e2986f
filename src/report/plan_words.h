// Parts shared by the planner's reports. Internal to src/report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "document.h"
#include "headroom/plan_report.h"
#include "json_writer.h"

namespace headroom::detail {

/// "train · batch 64 · seq 2048 · 64 × a100-80gb · bfloat16 · eager attention", without the devices
/// if their rates have no name.
[[nodiscard]] std::string describe(const PlanQuestion& question);

/// "tp 8 · sp · pp 4 · micro-batch 1 · recompute selective · ZeRO 1"
[[nodiscard]] std::string describe(const PlanChoice& choice, Purpose purpose);

/// "fused attention", and of decode steps how, if not as usual.
[[nodiscard]] std::string describe_attention(const PlanQuery& query);

/// "LoRA rank 16", or "4 LoRA adapters of rank 16" that requests use.
[[nodiscard]] std::string describe_adapter(const PlanQuery& query);

/// One category of a rank's memory.
struct MemoryCategory {
  const char* key;    ///< in JSON
  const char* title;  ///< on screen
  Integer bytes;
};
/// All categories, in the order of reports.
[[nodiscard]] std::vector<MemoryCategory> categories_of(const PlanMemory& memory);

/// The name of an iteration: "step", "decode step" or "pass".
[[nodiscard]] const char* step_name(Purpose purpose, const PlanTime& time);

/// The number, or "no limit".
[[nodiscard]] std::string limit_text(const std::optional<std::int64_t>& limit);

/// A document that begins with model, workload and types.
[[nodiscard]] Document document_of(const PlanQuestion& question);

/// The assumed efficiencies of the device, and the network between devices.
void add_device(const PlanQuestion& question, Document& document);

/// The link to the host, for a plan that offloads to its memory.
void add_host_link(const PlanQuestion& question, const PlanChoice& choice, Document& document);
/// Likewise, to the machine of question_json().
void add_host_link(const PlanQuestion& question, const PlanChoice& choice, Json& json);

/// The command of an engine, and the release that has its options; nothing without a command.
void add_engine(const std::string& command, std::optional<Engine> engine, Document& document);
/// Likewise; null without a command.
void add_engine(const std::string& command, std::optional<Engine> engine, Json& json);

[[nodiscard]] Json question_json(const PlanQuestion& question, std::string_view schema);
[[nodiscard]] Json plan_json(const PlanChoice& choice);
[[nodiscard]] Json result_json(const PlanResult& result, const PlanQuestion& question);

}  // namespace headroom::detail
