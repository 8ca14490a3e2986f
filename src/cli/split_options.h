// `headroom fit` with a host: options of a model in two memories.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/memory_split.h"
#include "plan_options.h"

namespace headroom::cli {

struct SplitOptions {
  std::string host;  ///< a machine; empty: assumed
  std::optional<Integer> memory_bytes;
  std::optional<double> bytes_per_s;
  std::optional<double> link_bytes_per_s;
  SplitRequest request;
  std::vector<Option> all;
};

/// Adds --host, --host-memory, --host-bandwidth, --host-link, --gpu-layers and --n-cpu-moe.
void add_split_options(Command command, SplitOptions& options);

/// Returns whether a host is given. Throws Error{invalid_input} for another option of a split
/// without one.
[[nodiscard]] bool asks_for_split(const SplitOptions& options);

/// The report of these options. Throws Error{invalid_input}.
[[nodiscard]] SplitReport split_report_of(const PlanOptions& plan, const SplitOptions& options);

}  // namespace headroom::cli
