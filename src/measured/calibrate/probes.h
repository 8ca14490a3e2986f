// What calibration measures, by family of kernels. Each works with the present number of threads,
// but for products, whose weights are laid out once for all. Internal to src/measured/calibrate.
#pragma once

#include <functional>
#include <vector>

#include "kernels/gemm.h"
#include "sweep.h"

namespace headroom::measured {

struct LinearProbes {
  Backend backend = Backend::eigen;
  std::vector<Budget> budgets;  ///< for each profile, with its gauge
};

/// Adds the tables of products to every profile. `observer` is told of the share that is done;
/// false as soon as it returns that.
[[nodiscard]] bool probe_linears(const LinearProbes& probes, std::vector<ThreadProfile>& profiles,
                                 const std::function<bool(double)>& observer);

/// Scores, softmax, context, fused and linear attention.
void probe_attention(const Budget& budget, std::vector<KernelTable>& tables);

/// Scores, context and fused attention of one query to a KV-cache.
void probe_step_attention(const Budget& budget, std::vector<KernelTable>& tables);

/// Everything that goes once over its elements.
void probe_elementwise(const Budget& budget, std::vector<KernelTable>& tables);

/// Stores what operators cost beside their kernels.
void probe_overheads(const Budget& budget, ThreadProfile& profile);

[[nodiscard]] std::vector<BandwidthPoint> probe_read(const Budget& budget);
[[nodiscard]] std::vector<BandwidthPoint> probe_write(const Budget& budget);

}  // namespace headroom::measured
