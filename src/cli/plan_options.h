// Options that `fit` and `plan` share.
#pragma once

#include <optional>
#include <string>

#include "headroom/fit.h"
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
  // What the machine is assumed to be, where it is said.
  std::optional<Integer> memory_bytes;
  std::optional<std::int64_t> devices_per_node;
  std::optional<double> intra_node_bytes_per_s;
  std::optional<double> inter_node_bytes_per_s;
  std::optional<double> matrix_efficiency;
  std::optional<double> memory_efficiency;
  std::optional<double> network_efficiency;
  OutputOptions output;
};

/// Adds the model, the machine, what is planned for, and the degrees of a plan.
void add_plan_options(CLI::App& app, PlanOptions& options);

/// The question that the options ask; what is not said is chosen here. Throws Error{invalid_input}.
[[nodiscard]] PlanQuestion question_of(const PlanOptions& options);

/// The one plan that the degrees describe: --dp is what --count leaves.
[[nodiscard]] PlanRequest request_of(const PlanOptions& options);

/// "80GB", "79.1GiB", "1024": bytes. Throws CLI::ValidationError.
[[nodiscard]] Integer parse_bytes(const std::string& option, const std::string& text);

}  // namespace headroom::cli
