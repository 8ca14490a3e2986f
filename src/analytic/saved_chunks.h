// Tensors that the reference code of attention in chunks saves (transformers,
// modeling_longformer.py). Internal to src/analytic.
#pragma once

#include "block_ledger.h"

namespace headroom::detail {

/// The GEMM of the scores copies its overlapping chunks, 2w of every w rows but for the last. One
/// mask for either end of a sequence hides the pairs beyond it. The GEMM with the global keys
/// copies its operands.
void keep_chunked_scores(const AttentionShape& shape, BlockLedger& ledger);

/// The GEMM of the context reads the probabilities of N/w blocks of w rows, 3w + 2 wide with
/// zeros outside the windows, and copies 3w rows of values for each; that with the global keys
/// copies its operands.
void keep_chunked_context(const AttentionShape& shape, BlockLedger& ledger);

}  // namespace headroom::detail
