#include "saved_biases.h"

#include "op_cost.h"

namespace headroom::detail {

void keep_disentangled(const DisentangledBias& op, std::span<const TensorId> inputs,
                       const Expr& copies, BlockLedger& ledger) {
  const AttentionShape& shape = op.shape;
  const Expr projected = op.projections() * op.positions * shape.heads * shape.head_dim;
  ledger.keep(inputs[1], "relative embeddings", op.positions * op.width * kActivationBytes);
  ledger.keep(inputs[0], "query", shape.query_elements() * kActivationBytes);
  ledger.keep(inputs[0], "key", shape.key_elements() * kActivationBytes);
  ledger.keep_core("projected positions", copies * projected * kActivationBytes, SavedKind::tensor);
  ledger.keep_core("distances", shape.queries * shape.keys * kIndexBytes, SavedKind::input_data);
}

void keep_transformer_xl(const TransformerXlBias& op, std::span<const TensorId> inputs,
                         BlockLedger& ledger) {
  const AttentionShape& shape = op.shape;
  for (const char* const name :
       {"query and content bias", "query and position bias", "query and segment bias"}) {
    ledger.keep_new(name, shape.query_elements() * kActivationBytes);
  }
  ledger.keep(inputs[0], "key", shape.key_elements() * kActivationBytes);
  ledger.keep(inputs[1], "position keys",
              shape.batch * op.positions * shape.heads * shape.head_dim * kActivationBytes);
  ledger.keep_core("segments",
                   shape.batch * shape.queries * shape.keys * op.segments * kActivationBytes,
                   SavedKind::input_data);
}

void keep_gated_position_bias(const GatedPositionBias& op, std::span<const TensorId> inputs,
                              BlockLedger& ledger) {
  ledger.keep_core("gates' input", op.shape.query_elements() * kActivationBytes, SavedKind::tensor);
  ledger.keep_core("gates", Integer{4} * op.gated_rows() * kActivationBytes, SavedKind::tensor);
  ledger.keep(inputs[1], "relative bias", op.shape.score_elements() * kActivationBytes);
}

void keep_temperature(const TemperatureScale& op, std::span<const TensorId> inputs,
                      BlockLedger& ledger) {
  if (op.tuning.from != TemperatureTuning::From::of_heads) return;
  ledger.keep(inputs.front(), "queries before the temperature",
              op.heads.elements() * kActivationBytes);
  ledger.keep_new("temperatures", op.heads.heads * op.seq_len * kActivationBytes,
                  SavedKind::tensor);
}

void keep_local_attention(const LocalAttention& op, std::span<const TensorId> inputs,
                          BlockLedger& ledger) {
  const Expr rows = op.query_elements() * kActivationBytes;
  const char* const names[] = {"query", "key", "value"};
  for (std::size_t i = 0; i < std::size(names); ++i) ledger.keep(inputs[i], names[i], rows);
  ledger.keep(inputs[3], "position keys",
              Integer{op.positions} * op.heads * op.head_dim * kActivationBytes);
  ledger.keep_core("capped scores", op.score_elements() * kActivationBytes, SavedKind::tensor);
  ledger.keep_core("probabilities", op.score_elements() * kActivationBytes, SavedKind::tensor);
}

}  // namespace headroom::detail
