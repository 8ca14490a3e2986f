// What reports of the planner have in common. Internal to src/report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "document.h"
#include "headroom/fit.h"
#include "json_writer.h"

namespace headroom::detail {

/// "train · batch 64 · seq 2048 · 64 × a100-80gb · bfloat16 · eager attention"
[[nodiscard]] std::string describe(const PlanQuestion& question);

/// "tp 8 · sp · pp 4 · micro-batch 1 · recompute selective · ZeRO 1"
[[nodiscard]] std::string describe(const PlanChoice& choice, Purpose purpose);

/// The categories of a rank's memory in the order of reports: key in JSON, words on screen, bytes.
struct MemoryCategory {
  const char* key;
  const char* title;
  Integer bytes;
};
[[nodiscard]] std::vector<MemoryCategory> categories_of(const PlanMemory& memory);

/// What an iteration is called: "step", "decode step", "pass".
[[nodiscard]] const char* step_name(Purpose purpose, const PlanTime& time);

/// "no limit" where there is none.
[[nodiscard]] std::string limit_text(const std::optional<std::int64_t>& limit);

/// Lines about the device: its peaks, and which shares of them are assumed.
void add_device(const PlanQuestion& question, Document& document);

[[nodiscard]] Document to_document(const FitReport& report);
[[nodiscard]] Json to_json(const FitReport& report);
[[nodiscard]] Document to_document(const PlanReport& report);
[[nodiscard]] Json to_json(const PlanReport& report);

[[nodiscard]] Json question_json(const PlanQuestion& question);
[[nodiscard]] Json plan_json(const PlanChoice& choice);
[[nodiscard]] Json result_json(const PlanResult& result, const PlanQuestion& question);

}  // namespace headroom::detail
