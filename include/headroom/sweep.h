// Sweep: the figures of a model over a grid of workloads, row by row. A graph is built and counted
// once for each phase and attention implementation; a row then takes well under a microsecond.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/kv_cache.h"
#include "headroom/machine_profile.h"
#include "headroom/model_spec.h"
#include "headroom/weight_storage.h"
#include "headroom/workload.h"

namespace headroom {

/// All combinations of these values; the batch varies fastest. An empty axis has the default value
/// of WorkloadRequest.
struct SweepGrid {
  Phase phase = Phase::prefill;
  Kernels kernels = Kernels::reference;
  std::vector<AttentionImplementation> attention;
  std::vector<Recompute> recompute;
  std::vector<WeightType> weights;
  std::vector<DType> dtype;
  std::vector<DType> arithmetic;
  std::vector<KvTypes> kv_types;
  std::vector<std::int64_t> enc_seq_len;
  std::vector<std::int64_t> past_len;
  std::vector<std::int64_t> seq_len;
  std::vector<std::int64_t> batch_size;
};

/// The figures of one workload, equal to those of `analyze`.
struct SweepRow {
  Workload workload;
  KvType key_type = KvType::float32;  ///< of the KV-cache, with a cache only
  KvType value_type = KvType::float32;
  Integer weight_bytes = 0;
  Integer matrix_flops = 0;  ///< forward
  Integer elementwise_flops = 0;
  Integer backward_matrix_flops = 0;
  Integer traffic_bytes = 0;     ///< forward, read and written
  Integer activation_bytes = 0;  ///< the peak; in training, bytes saved for the backward pass
  Integer kv_cache_bytes = 0;
  std::optional<double> time_s;  ///< only with a machine
};

/// Receives each row; returns false to stop the sweep.
using SweepSink = std::function<bool(const SweepRow&)>;

/// Number of workloads in the grid.
[[nodiscard]] Integer size_of(const SweepGrid& grid);

/// Calls `sink` with the rows in the order of the grid until it returns false. Throws
/// Error{invalid_input} for a workload that the model cannot run, or for training on a machine;
/// Error{overflow}.
void sweep(const ModelSpec& spec, const SweepGrid& grid,
           const std::optional<MachineProfile>& machine, const SweepSink& sink);

}  // namespace headroom
