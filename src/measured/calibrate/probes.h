// Probes of calibration, one per family of kernels. They use the current number of threads, except
// linear layers, whose weights are packed once for all. Internal to src/measured/calibrate.
#pragma once

#include <functional>
#include <vector>

#include "calibrate.h"
#include "kernels/gemm.h"
#include "sweep.h"

namespace headroom::measured {

struct LinearProbes {
  Backend backend = Backend::eigen;
  std::vector<Budget> budgets;  ///< per profile, each with its gauge
};

/// Adds the tables of linear layers to every profile. Calls `observer` with the completed fraction;
/// returns false as soon as the observer does.
[[nodiscard]] bool probe_linears(const LinearProbes& probes, std::vector<ThreadProfile>& profiles,
                                 const std::function<bool(double)>& observer);

/// Adds the GEMMs of `weights` as they are stored to every profile; likewise.
[[nodiscard]] bool probe_stored_gemms(const LinearProbes& probes, const GemmWeights& weights,
                                      std::vector<ThreadProfile>& profiles,
                                      const std::function<bool(double)>& observer);

/// Measures scores, softmax, context, fused and linear attention of prefill.
void probe_attention(const Budget& budget, std::vector<KernelTable>& tables);

/// Measures scores, context and fused attention of one query with a KV-cache.
void probe_step_attention(const Budget& budget, std::vector<KernelTable>& tables);

/// Measures sums, copies, norms and embedding.
void probe_elementwise(const Budget& budget, std::vector<KernelTable>& tables);

/// Measures the overhead of an operator outside its kernel.
void probe_overheads(const Budget& budget, ThreadProfile& profile);

/// Measures plain reading and writing for working sets from L1 to memory.
[[nodiscard]] std::vector<BandwidthPoint> probe_read(const Budget& budget);
[[nodiscard]] std::vector<BandwidthPoint> probe_write(const Budget& budget);

}  // namespace headroom::measured
