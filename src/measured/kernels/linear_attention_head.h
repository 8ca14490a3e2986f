// The piece of work of linear attention.
#pragma once

#include <cstdint>

#include "attention.h"

namespace headroom::measured {

/// One key-value head of one sequence, and the state that belongs to it.
struct LinearAttentionHead {
  const AttentionArguments& args;
  std::int64_t batch;
  std::int64_t kv_head;
  float eps;
  float* s;
  float* z;

  [[nodiscard]] std::int64_t group() const { return args.heads / args.kv_heads; }
  [[nodiscard]] const float* query(std::int64_t token, std::int64_t member) const {
    return args.q + batch * args.q_batch_stride + token * args.q_stride +
           (kv_head * group() + member) * args.head_dim;
  }
  [[nodiscard]] float* out(std::int64_t token, std::int64_t member) const {
    return args.out + batch * args.out_batch_stride + token * args.out_stride +
           (kv_head * group() + member) * args.value_head_dim;
  }
  [[nodiscard]] const float* key(std::int64_t token) const {
    return args.k + batch * args.k_batch_stride + token * args.k_stride +
           kv_head * args.k_head_stride;
  }
  [[nodiscard]] const float* value(std::int64_t token) const {
    return args.v + batch * args.v_batch_stride + token * args.v_stride +
           kv_head * args.v_head_stride;
  }
  [[nodiscard]] bool is_padding(std::int64_t token) const {
    return args.key_mask != nullptr && args.key_mask[batch * args.keys + token] == 0;
  }
};

/// Divides a finished row of out by its denominator.
inline void divide_row(float* row, std::int64_t count, float divisor) {
  const float inverse = 1.0F / divisor;
  for (std::int64_t i = 0; i < count; ++i) row[i] *= inverse;
}

/// Answers every query after its own key, which the state takes in first.
void attend_causally(const LinearAttentionHead& head);

}  // namespace headroom::measured
