// The request of `headroom complexity`, and its studies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "complexity_runs.h"
#include "headroom/complexity.h"
#include "headroom/machine_profile.h"
#include "model_reading.h"
#include "options.h"

namespace headroom::cli {

enum class Study { layers, associativity, generation, shares };

[[nodiscard]] std::string_view name_of(Study study) noexcept;

struct ComplexityCommand {
  std::vector<std::string> layers;  ///< a model each; only Study::layers takes several
  ModelReading reading;
  Study study = Study::layers;
  std::vector<std::int64_t> lengths;     ///< ascending; empty: the study's default
  std::vector<std::int64_t> new_tokens;  ///< Study::generation; ascending, empty: its default
  std::optional<std::int64_t> prompt;    ///< Study::generation
  /// Study::generation of an encoder-decoder
  std::optional<std::int64_t> enc_seq_len;
  std::optional<AttentionImplementation> attention;
  bool measures = false;
  RunPlan plan;
  std::vector<Option> run_only;        ///< of measured runs
  std::vector<Option> processor_only;  ///< of measured runs, or of a machine that was calibrated
  std::string machine;  ///< empty: this one if it is calibrated and runs are measured
  OutputOptions output;
};

/// The profile for predicted times; empty if none was named and this machine has none. Throws
/// Error{invalid_input} for options that have no effect on it.
[[nodiscard]] std::optional<MachineProfile> machine_of(const ComplexityCommand& command);

[[nodiscard]] ComplexityReport study_layers(const ComplexityCommand& command);
[[nodiscard]] AssociativityReport study_associativity(const ComplexityCommand& command);
[[nodiscard]] GenerationReport study_generation(const ComplexityCommand& command);
[[nodiscard]] SharesReport study_shares(const ComplexityCommand& command);

}  // namespace headroom::cli
