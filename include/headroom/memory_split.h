// A served model in two memories: layers, or their routed experts, stay in the host's memory where
// the device's is too small. As llama.cpp places them (--gpu-layers, --n-cpu-moe).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/machine_profile.h"
#include "headroom/plan_report.h"
#include "headroom/storage.h"

namespace headroom {

/// The host beside a device: its memory, its processors, and the link between the two.
struct HostRates {
  std::string name;
  Integer memory_bytes = 0;
  double memory_bytes_per_s = 0;      ///< reached, not the datasheet's
  std::optional<double> flops_per_s;  ///< reached by GEMMs; empty: never the bottleneck
  double link_bytes_per_s = 0;        ///< one direction
  std::string source;                 ///< of the rates
};

/// The host's rates of `machine`: datasheet or calibration, times their efficiencies.
[[nodiscard]] HostRates host_rates(const MachineProfile& machine, DType dtype);
/// A host of which only the memory is known: two channels of DDR5-5600.
[[nodiscard]] HostRates assumed_host(Integer memory_bytes);

/// A model's parts by memory. The word embedding stays on the host.
struct MemorySplit {
  /// Of the model's layers and its head, the last ones, on the device (--gpu-layers): 1 is the head
  /// alone.
  std::int64_t gpu_layers = 0;
  /// The first layers, whose routed experts stay on the host (--n-cpu-moe).
  std::int64_t cpu_moe_layers = 0;
  bool operator==(const MemorySplit&) const = default;
};

/// Parts of the split that are given; the others are chosen for the fastest decode step.
struct SplitRequest {
  std::optional<std::int64_t> gpu_layers;
  std::optional<std::int64_t> cpu_moe_layers;
};

/// Bytes in one memory.
struct SplitMemory {
  Integer weights = 0;
  Integer kv_cache = 0;
  Integer activations = 0;
  Integer runtime = 0;
  [[nodiscard]] Integer total() const;
};

/// Times of a split: a decode step of all sequences, and the prefill of one prompt.
struct SplitTime {
  double decode_s = 0;
  double low_s = 0;  ///< of decode_s: nine of ten runs lie from low to high
  double high_s = 0;
  double device_s = 0;    ///< part of decode_s on the device
  double host_s = 0;      ///< part of decode_s on the host
  double transfer_s = 0;  ///< part of decode_s on the link
  double ttft_s = 0;
  double tokens_per_s = 0;  ///< of decode steps, all sequences
};

struct SplitFigures {
  MemorySplit split;
  SplitMemory device;
  SplitMemory host;
  SplitTime time;
  bool fits = false;  ///< in both memories
};

/// `headroom fit` with a host.
struct SplitReport {
  PlanQuestion question;  ///< of one device
  HostRates host;
  std::int64_t layers = 0;
  bool has_experts = false;
  SplitFigures result;
  /// Quarters of the layers on the device, then, with all of them on it, of those whose experts are
  /// on the host; from the fewest bytes on the device to the most.
  std::vector<SplitFigures> others;
  StoredWeights storage;
  Integer parameters = 0;
  std::string command;  ///< of llama-server
  std::vector<std::string> notes;
};

/// The split of `request`, or the fastest that fits. Without one that fits, the device holds its
/// part, and the host is over by the fewest bytes. Throws Error{invalid_input} for training, a
/// model without a KV-cache or with an encoder, several devices, images, a machine without speed,
/// layers that share weights, and a request beyond the model's layers.
[[nodiscard]] SplitReport make_split_report(PlanQuestion question, HostRates host,
                                            const SplitRequest& request);

}  // namespace headroom
