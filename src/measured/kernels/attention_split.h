// Fused attention of few lanes with more threads than heads: each head's keys are shared out.
#pragma once

#include <cstdint>

#include "attention.h"

namespace headroom::measured {

/// Parts that the keys of each KV head of a sequence are divided into for `threads` threads; 1 for
/// none, if there are enough heads, several blocks of lanes, or too few keys.
[[nodiscard]] std::int64_t key_parts(const AttentionArguments& args, int threads);

/// Floats that the parts need on `threads` threads, for `args` or fewer queries, keys or sequences.
[[nodiscard]] std::int64_t split_scratch_floats(const AttentionArguments& args, int threads);

/// Scratch of split_attention.
struct SplitScratch {
  float* of_threads = nullptr;  ///< that of fused_attention
  std::int64_t of_thread_floats = 0;
  float* partials = nullptr;  ///< split_scratch_floats()
};

/// Fused attention in `parts` parts of keys, each with an online softmax of its own, that are then
/// added up, rescaled to the largest score (Flash-Decoding).
void split_attention(const AttentionArguments& args, std::int64_t parts,
                     const SplitScratch& scratch);

}  // namespace headroom::measured
