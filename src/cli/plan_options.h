// Options that `fit` and `plan` share.
#pragma once

#include <optional>
#include <string>

#include "headroom/plan.h"
#include "options.h"

namespace headroom::cli {

struct PlanOptions {
  std::string model;
  std::string machine;
  std::int64_t count = 1;
  PlanQuery query;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> seq_len;
  std::optional<AttentionImplementation> attention;
  std::optional<DType> kv_dtype;
  std::optional<WeightFormat> weights;
  FixedDegrees fixed;
  // Replacements of the machine's own figures.
  std::optional<Integer> memory_bytes;
  std::optional<std::int64_t> devices_per_node;
  std::optional<double> intra_node_bytes_per_s;
  std::optional<double> inter_node_bytes_per_s;
  std::optional<double> matrix_efficiency;
  std::optional<double> memory_efficiency;
  std::optional<double> network_efficiency;
  OutputOptions output;
};

/// Adds model, machine, purpose, load, and the degrees of a plan.
void add_plan_options(Command command, PlanOptions& options);

/// The planner's question, with defaults for options that were not given. Throws
/// Error{invalid_input}.
[[nodiscard]] PlanQuestion question_of(const PlanOptions& options);

/// The one plan of these degrees; data parallelism fills the remaining devices. Throws
/// Error{invalid_input} if the degrees do not multiply to the number of devices.
[[nodiscard]] PlanRequest request_of(const PlanOptions& options);

}  // namespace headroom::cli
