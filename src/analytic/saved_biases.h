// Tensors that biases of scores by relative positions (DeBERTa, XLNet) and trained temperatures
// save. Internal to src/analytic.
#pragma once

#include <span>

#include "block_ledger.h"

namespace headroom::detail {

/// The table for its projections, and these for the scores, in so many `copies`: the reference code
/// makes one for each sequence. `inputs`: those of the operator.
void keep_disentangled(const DisentangledBias& op, std::span<const TensorId> inputs,
                       const Expr& copies, BlockLedger& ledger);

/// The queries with each of the three biases, the keys, and those of the positions.
void keep_transformer_xl(const TransformerXlBias& op, std::span<const TensorId> inputs,
                         BlockLedger& ledger);

/// A copy of the input by head, the gates before and after they are combined, and the bias, which
/// the class copies for every sequence.
void keep_gated_position_bias(const GatedPositionBias& op, std::span<const TensorId> inputs,
                              BlockLedger& ledger);

/// For a trained temperature the queries before it, and its factors, equal for all sequences.
void keep_temperature(const TemperatureScale& op, std::span<const TensorId> inputs,
                      BlockLedger& ledger);

/// Queries, keys, values and those of the positions; the scores' tanh and the probabilities.
void keep_local_attention(const LocalAttention& op, std::span<const TensorId> inputs,
                          BlockLedger& ledger);

}  // namespace headroom::detail
