// Options that `fit` and `plan` share.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "headroom/engine_command.h"
#include "headroom/plan_report.h"
#include "headroom/storage.h"
#include "model_reading.h"
#include "options.h"

namespace headroom::cli {

/// --count: a number, "auto" for the fewest that hold the model, or neither.
struct DeviceCount {
  std::optional<std::int64_t> given;
  bool fewest = false;
  [[nodiscard]] std::int64_t value() const { return given.value_or(1); }
};

struct PlanOptions {
  std::string model;
  ModelReading reading;
  std::string machine;
  DeviceCount count;
  PlanQuery query;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> seq_len;
  std::optional<AttentionImplementation> attention;
  KvCacheRequest kv_cache;
  std::optional<DType> dtype;
  std::optional<WeightForm> weights;
  std::optional<DType> arithmetic;
  std::variant<std::monostate, Recipe, InferenceRecipe> recipe;
  std::optional<InferenceRecipe> dtype_recipe;  ///< of a --dtype of 8 bits
  FixedDegrees fixed;
  // Replacements of the machine's own figures.
  std::optional<Integer> memory_bytes;
  std::optional<std::int64_t> devices_per_node;
  std::optional<double> intra_node_bytes_per_s;
  std::optional<double> inter_node_bytes_per_s;
  GivenEfficiency efficiency;
  std::optional<Engine> engine;  ///< whose command line the report has
  OutputOptions output;
  // Handles of options that only one purpose reads.
  std::vector<Option> training_only;
  std::vector<Option> serving_only;
  std::vector<Option> adapter_only;
  std::optional<Option> phase;            ///< empty: the command has one purpose
  std::optional<Option> served_adapters;  ///< their number; empty: the command serves none
};

/// Returns whether requests use adapters.
[[nodiscard]] bool serves_adapters(const PlanOptions& options);

/// `fit` compares machines if it is given none, and takes --count auto.
enum class MachineNeed { required, optional };

/// Adds model, machine, purpose, load, and the degrees of a plan.
void add_plan_options(Command command, PlanOptions& options,
                      MachineNeed need = MachineNeed::required);

/// Adds those of a training run: of the options above, the ones that training reads.
void add_training_plan_options(Command command, PlanOptions& options);

/// Adds model, machine, types, KV-cache and the degrees of a serving plan, without a load. Returns
/// the option of the number of devices.
Option add_serving_plan_options(Command command, PlanOptions& options);

/// Throws Error{invalid_input} for an option that this purpose does not read.
void refuse_ignored_options(const PlanOptions& options);

/// The planner's question without rates of a machine. Throws Error{invalid_input}.
[[nodiscard]] PlanQuestion question_without_machine(const PlanOptions& options);

/// Memory needs no calibration of this machine; time does.
enum class SpeedNeed { required, optional };

/// Engine whose rates `calibrate --from` starts from: a machine's file has fractions of its peaks
/// as serving engines reach them, whose GEMMs have tiles.
constexpr Engine kFittedEngine = Engine::vllm;

/// The planner's question, with defaults for options that were not given. Throws
/// Error{invalid_input}, also for a machine without the speed that is needed.
[[nodiscard]] PlanQuestion question_of(const PlanOptions& options,
                                       SpeedNeed need = SpeedNeed::required);

/// Notes on given options that have no effect on `choice`, the plan that was searched for.
[[nodiscard]] std::vector<std::string> notes_on_unused(const PlanOptions& options,
                                                       const ModelSpec& spec,
                                                       const PlanChoice& choice);

/// The command line that --engine asks for, with its notes added to `notes`; empty without it.
/// Throws Error{invalid_input}.
[[nodiscard]] std::string engine_command_of(const PlanOptions& options,
                                            const PlanQuestion& question, const PlanChoice& choice,
                                            std::vector<std::string>& notes);

/// The one plan of these degrees; data parallelism fills the remaining devices. Throws
/// Error{invalid_input} if the degrees do not multiply to the number of devices.
[[nodiscard]] PlanRequest request_of(const PlanOptions& options);

}  // namespace headroom::cli
