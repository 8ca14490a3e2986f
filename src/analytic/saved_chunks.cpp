#include "saved_chunks.h"

#include "op_cost.h"

namespace headroom::detail {

void keep_chunked_scores(const AttentionShape& shape, BlockLedger& ledger) {
  const Expr heads = shape.batch * shape.heads;
  const Expr copied = Integer{2} * heads * (shape.queries - shape.block) * shape.head_dim;
  ledger.keep_new("query chunks", copied * kActivationBytes);
  ledger.keep_new("key chunks", copied * kActivationBytes);
  ledger.keep_core("masks of the ends",
                   Integer{2} * heads * shape.block * (shape.block + Integer{1}), SavedKind::mask);
  if (shape.global_keys.is_zero()) return;
  ledger.keep_new("query", heads * shape.queries * shape.head_dim * kActivationBytes);
  ledger.keep_new("global keys", heads * shape.global_keys * shape.head_dim * kActivationBytes);
}

void keep_chunked_context(const AttentionShape& shape, BlockLedger& ledger) {
  const Expr rows = shape.batch * shape.heads * shape.queries;
  ledger.keep_core("probabilities of blocks",
                   rows * (Integer{3} * shape.block + Integer{2}) * kActivationBytes,
                   SavedKind::tensor);
  ledger.keep_new("value blocks", Integer{3} * rows * shape.value_head_dim * kActivationBytes);
  if (shape.global_keys.is_zero()) return;
  ledger.keep_core("probabilities of global keys", rows * shape.global_keys * kActivationBytes,
                   SavedKind::tensor);
  ledger.keep_new("global values", shape.batch * shape.heads * shape.global_keys *
                                       shape.value_head_dim * kActivationBytes);
}

}  // namespace headroom::detail
