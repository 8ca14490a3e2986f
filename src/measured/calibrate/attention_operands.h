// Operands of attention that lie as the executor's do: heads side by side in a token's row.
// Internal to src/measured/calibrate.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/attention.h"
#include "sweep.h"

namespace headroom::measured {

struct HeadSizes {
  std::int64_t kv_heads;
  std::int64_t group;  ///< query heads to each
  std::int64_t head_dim;
};

/// Operands of one attention, several times over, in memory that all share: one at a time.
class Operands {
 public:
  /// A prompt's: queries, keys and values side by side in one row.
  static Operands of_prompt(std::int64_t heads, std::int64_t queries, std::int64_t keys,
                            std::int64_t head_dim) {
    return {{heads, 1, head_dim}, queries, keys, KeyPlace::rows, kNearBytes};
  }

  /// Those of a step that goes on from a KV-cache, of which there are as many as make `bytes`.
  static Operands of_step(const HeadSizes& sizes, std::int64_t keys, std::int64_t bytes) {
    return {sizes, 1, keys, KeyPlace::cache, bytes};
  }

  [[nodiscard]] AttentionArguments& args() { return args_; }

  /// The next copy's.
  [[nodiscard]] const AttentionArguments& next() {
    const Copy& copy = copies_[at_++ % copies_.size()];
    args_.q = copy.q;
    args_.k = copy.kv + keys_begin_;
    args_.v = copy.kv + values_begin_;
    return args_;
  }

 private:
  static constexpr std::int64_t kLine = 16;  // floats of a cache line

  struct Copy {
    const float* q = nullptr;
    const float* kv = nullptr;
  };

  /// In a token's row behind its query; or all keys before all values, each head's together.
  enum class KeyPlace { rows, cache };

  Operands(const HeadSizes& sizes, std::int64_t queries, std::int64_t keys, KeyPlace place,
           std::int64_t bytes) {
    const std::int64_t kv_width = sizes.kv_heads * sizes.head_dim;
    const std::int64_t width = sizes.group * kv_width;
    const bool in_rows = place == KeyPlace::rows;
    const std::int64_t key_row = in_rows ? width + 2 * kv_width : sizes.head_dim;
    const std::int64_t kv_floats = in_rows ? keys * key_row : 2 * keys * kv_width;
    args_.heads = sizes.kv_heads * sizes.group;
    args_.kv_heads = sizes.kv_heads;
    args_.head_dim = args_.value_head_dim = sizes.head_dim;
    args_.queries = queries;
    args_.keys = keys;
    args_.q_stride = width + 2 * kv_width;
    args_.k_stride = args_.v_stride = key_row;
    args_.out_stride = width;
    args_.k_head_stride = args_.v_head_stride = in_rows ? sizes.head_dim : keys * sizes.head_dim;
    args_.q_batch_stride = queries * args_.q_stride;
    args_.k_batch_stride = args_.v_batch_stride = kv_floats;
    args_.out_batch_stride = queries * width;
    args_.scale = 0.1F;
    keys_begin_ = in_rows ? width : 0;
    values_begin_ = keys_begin_ + (in_rows ? kv_width : keys * kv_width);
    const auto lines = [](std::int64_t count) { return (count + kLine - 1) / kLine * kLine; };
    const std::int64_t q_floats = lines(queries * args_.q_stride);
    const std::int64_t floats_each = q_floats + lines(kv_floats);
    const std::int64_t copies = std::max<std::int64_t>(bytes / 4 / floats_each, 1);
    const float* const numbers = shared_numbers(copies * floats_each);
    for (std::int64_t i = 0; i < copies; ++i) {
      const float* const copy = numbers + i * floats_each;
      copies_.push_back({copy, copy + q_floats});
    }
    out_ = filled(queries * width);
    args_.out = out_.data();
    (void)next();
  }

  AttentionArguments args_;
  std::vector<Copy> copies_;
  std::size_t at_ = 0;
  std::int64_t keys_begin_ = 0;
  std::int64_t values_begin_ = 0;
  AlignedVector<float> out_;
};

}  // namespace headroom::measured
