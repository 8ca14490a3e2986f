#include "headroom/analysis.h"

namespace headroom {
namespace {

constexpr std::int64_t kDeltaChunk = 64;  // transformers, torch_chunk_gated_delta_rule

/// One layer's scan over a batch of sequences.
struct LayerScan {
  Integer sequences;  ///< of positions: one per batch item and head
  Integer positions;
  Integer state;  ///< elements per head

  [[nodiscard]] Integer chunks(std::int64_t size) const { return (positions + size - 1) / size; }
};

ScanFlops dual_flops(const StateSpaceSpec& spec, const LayerScan& scan) {
  const Integer size = spec.chunk_size;
  const Integer chunks = scan.chunks(spec.chunk_size);
  const Integer within = 2 * size * size * (spec.state_size + spec.head_dim);
  const Integer states = 4 * size * scan.state;
  const Integer between = 2 * (chunks + 1) * (chunks + 1) * scan.state;
  return {scan.sequences * scan.positions * 4 * scan.state,
          scan.sequences * (chunks * (within + states) + between), spec.chunk_size};
}

/// Within a block of c positions Q·Kᵀ and its product with V, then the block's keys into the state
/// and the state's contribution (transformers, MiniMaxLightningAttention). The last block is as
/// short as it is.
ScanFlops lightning_flops(const StateSpaceSpec& spec, const LayerScan& scan) {
  const Integer size = spec.chunk_size;
  const Integer whole = scan.positions / size;
  const Integer rest = scan.positions % size;
  const Integer within = (whole * size * size + rest * rest) * 4 * spec.head_dim;
  const Integer recurrence = scan.sequences * scan.positions * 4 * scan.state;
  return {recurrence, scan.sequences * within + recurrence, spec.chunk_size};
}

ScanFlops delta_flops(const GatedDeltaSpec& spec, const LayerScan& scan) {
  const Integer size = kDeltaChunk;
  const Integer within = size * size * (6 * spec.key_head_dim + 4 * spec.value_head_dim);
  return {scan.sequences * scan.positions * 6 * scan.state,
          scan.sequences * scan.chunks(kDeltaChunk) * (within + 6 * size * scan.state),
          kDeltaChunk};
}

std::optional<ScanFlops> layer_flops(const AttentionSpec& attention, const Workload& workload) {
  if (const auto& spec = attention.gated_delta) {
    if (spec->decay == DeltaDecay::each_key_dim) return std::nullopt;  // fla's chunks, not run
    return delta_flops(*spec,
                       {Integer{workload.batch_size} * spec->num_value_heads, workload.seq_len,
                        Integer{spec->key_head_dim} * spec->value_head_dim});
  }
  const auto& spec = attention.state_space;
  if (!spec || spec->chunk_size == 0) return std::nullopt;
  const bool lightning = spec->kind == StateSpaceKind::lightning;
  const auto flops = lightning ? lightning_flops : dual_flops;
  return flops(*spec, {Integer{workload.batch_size} * spec->num_heads, workload.seq_len,
                       Integer{spec->head_dim} * spec->state_size});
}

}  // namespace

std::optional<ScanFlops> scan_flops(const ModelSpec& spec, const Workload& workload) {
  const StackSpec& stack = spec.main_stack();
  std::optional<ScanFlops> sum;
  if (workload.phase == Phase::decode) return sum;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const auto one = layer_flops(stack.attention_of(stack.variant(layer)), workload);
    if (!one) continue;
    if (!sum) sum = ScanFlops{0, 0, one->chunk_size};
    sum->recurrence = checked_add(sum->recurrence, one->recurrence);
    sum->chunked = checked_add(sum->chunked, one->chunked);
  }
  return sum;
}

}  // namespace headroom
