// Embeddings of hard tokens, whose ids the word embedding's table has rows of that nothing reads
// (HardTokensSpec). Internal to src/measured.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"
#include "kernels/embedding.h"
#include "weights.h"

namespace headroom::measured {

/// Reads the rows of `words` but those of hard tokens, which are computed once each and divided by
/// `scale`, as the embedding multiplies all rows by it. `width`: of the rows. Valid as long as the
/// weights.
[[nodiscard]] RowReader with_hard_tokens(RowReader words, const std::vector<HardTokensSpec>& specs,
                                         const ModelWeights& weights, std::int64_t width,
                                         float scale);

}  // namespace headroom::measured
