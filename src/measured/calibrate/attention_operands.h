// Operands of attention in the executor's layouts. Internal to src/measured/calibrate.
#pragma once

#include <vector>

#include "kernels/aligned.h"
#include "kernels/attention.h"
#include "sweep.h"

namespace headroom::measured {

struct HeadSizes {
  std::int64_t kv_heads;
  std::int64_t group;  ///< query heads per KV head
  std::int64_t head_dim;
};

/// Operands of a prefill: queries, keys and values of all heads in a token's row.
class PromptOperands {
 public:
  PromptOperands(const HeadSizes& sizes, std::int64_t queries, std::int64_t keys);
  PromptOperands(PromptOperands&&) = default;  // moving keeps the pointers of args_ valid

  [[nodiscard]] AttentionArguments& args() { return args_; }

  /// Rewrites the operands, as the projection before the attention does.
  void rewrite() { write_rows(rows_, args_.q_stride); }

 private:
  AlignedVector<float> rows_;
  AlignedVector<float> out_;
  AttentionArguments args_;
};

/// Operands of a decode step, with as many KV-caches as make up `bytes`, in shared memory.
class StepOperands {
 public:
  StepOperands(const HeadSizes& sizes, std::int64_t keys, std::int64_t bytes);

  [[nodiscard]] const AttentionArguments& args() const { return args_; }

  /// Switches to the next KV-cache.
  [[nodiscard]] const AttentionArguments& next();

 private:
  AttentionArguments args_;
  std::vector<const float*> caches_;
  std::size_t at_ = 0;
  AlignedVector<float> out_;
};

}  // namespace headroom::measured
