// What `headroom complexity` was asked, and its studies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "complexity_runs.h"
#include "headroom/machine_profile.h"
#include "headroom/studies.h"
#include "options.h"

namespace headroom::cli {

enum class Study { layers, associativity, generation, shares };

[[nodiscard]] std::string_view name_of(Study study) noexcept;

struct ComplexityCommand {
  std::vector<std::string> layers;  ///< one model each; more than one in the study of layers alone
  Study study = Study::layers;
  std::vector<std::int64_t> lengths;     ///< ascending; empty: the study's own
  std::vector<std::int64_t> new_tokens;  ///< generation: likewise
  std::optional<std::int64_t> prompt;    ///< generation
  std::optional<AttentionImplementation> attention;
  bool measures = false;
  RunPlan plan;
  std::string machine;  ///< empty: this one, where it was calibrated and something is measured
  OutputOptions output;
};

/// The profile that times are predicted with, where there is one.
[[nodiscard]] std::optional<MachineProfile> machine_of(const ComplexityCommand& command);

[[nodiscard]] ComplexityReport study_layers(const ComplexityCommand& command);
[[nodiscard]] AssociativityReport study_associativity(const ComplexityCommand& command);
[[nodiscard]] GenerationReport study_generation(const ComplexityCommand& command);
[[nodiscard]] SharesReport study_shares(const ComplexityCommand& command);

}  // namespace headroom::cli
