// Operands of attention that lie as the executor's do. Internal to src/measured/calibrate.
#pragma once

#include <vector>

#include "kernels/aligned.h"
#include "kernels/attention.h"
#include "sweep.h"

namespace headroom::measured {

struct HeadSizes {
  std::int64_t kv_heads;
  std::int64_t group;  ///< query heads to each
  std::int64_t head_dim;
};

/// A prompt's: queries, keys and values of all heads side by side in a token's row.
class PromptOperands {
 public:
  PromptOperands(const HeadSizes& sizes, std::int64_t queries, std::int64_t keys);
  PromptOperands(PromptOperands&&) = default;  // the memory stays where it is

  [[nodiscard]] AttentionArguments& args() { return args_; }

  /// Writes them anew, as the product before the attention does.
  void renew() { write_rows(rows_, args_.q_stride); }

 private:
  AlignedVector<float> rows_;
  AlignedVector<float> out_;
  AttentionArguments args_;
};

/// A step's that goes on from a KV-cache, of which there are as many as make some bytes, in memory
/// that all share.
class StepOperands {
 public:
  StepOperands(const HeadSizes& sizes, std::int64_t keys, std::int64_t bytes);

  [[nodiscard]] const AttentionArguments& args() const { return args_; }

  /// Those that go on from the next KV-cache.
  [[nodiscard]] const AttentionArguments& next();

 private:
  AttentionArguments args_;
  std::vector<const float*> caches_;
  std::size_t at_ = 0;
  AlignedVector<float> out_;
};

}  // namespace headroom::measured
