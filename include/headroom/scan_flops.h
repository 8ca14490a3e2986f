// FLOPs of recurrent mixers in a prefill, by both algorithms that compute them: the recurrence,
// position by position, and the chunked form, whose GEMMs within and between chunks fill a GPU.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/integer.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom {

/// Matrix FLOPs of the scans of all layers; projections and convolutions are not part of a scan.
struct ScanFlops {
  Integer recurrence = 0;
  /// By the reference code's algorithm, which pads the sequence to whole chunks.
  Integer chunked = 0;
  std::int64_t chunk_size = 0;
};

/// FLOPs of the state-space and gated delta layers of `spec` on a pass of `workload.seq_len` new
/// positions; empty if it has none that the reference code computes in chunks, and in decode, where
/// it runs the recurrence. Of one chunk of C
/// positions and one head:
///
/// - Mamba-2 (transformers, models/mamba2, torch_forward), state [p, n]: C·Bᵀ and its product with
///   x within the chunk, 2·C²·(n + p); the chunk's state and its product with C, 4·C·p·n; and once
///   per layer each of k + 1 states from the k + 1 before, 2·(k + 1)²·p·n for k chunks.
/// - Gated delta (models/qwen3_next, torch_chunk_gated_delta_rule), state [k, v], C = 64: K·Kᵀ,
///   Q·Kᵀ and the three products of C × C matrices with keys and values, C²·(6·k + 4·v); the
///   products with the state, 6·C·k·v. The triangular inverse is element-wise.
[[nodiscard]] std::optional<ScanFlops> scan_flops(const ModelSpec& spec, const Workload& workload);

}  // namespace headroom
