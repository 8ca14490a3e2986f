// Unit of work of linear attention.
#pragma once

#include <cstdint>

#include "attention.h"
#include "parallel.h"
#include "tile_multiply.h"

namespace headroom::measured {

/// One KV head of one sequence, with its state.
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
  /// Divides a row of out by φ(q)·Z + eps.
  void normalize(std::int64_t token, std::int64_t member) const {
    const float weight = dot(query(token, member), z, args.head_dim) + eps;
    multiply_row(1 / weight, args.value_head_dim, out(token, member));
  }
};

/// Adds each token's key to the state, then computes the token's outputs.
void attend_causally(const LinearAttentionHead& head, Range tokens);

}  // namespace headroom::measured
