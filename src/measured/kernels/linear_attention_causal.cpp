#include <array>

#include "linear_attention_head.h"
#include "simd.h"
#include "tile_multiply.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

/// Adds a key to some columns of S, and computes those columns of the first query's output.
template <std::size_t vectors>
void step_columns(const LinearAttentionHead& head, std::int64_t token, std::int64_t column) {
  const AttentionArguments& args = head.args;
  const float* key = head.key(token);
  const float* query = head.query(token, 0);
  const auto at = [column](std::size_t v) {
    return column + static_cast<std::int64_t>(v) * kLanes;
  };
  std::array<Floats, vectors> value;
  std::array<Floats, vectors> sum = {};
  simd::unroll<vectors>([&](auto v) { value[v] = simd::load(head.value(token) + at(v)); });
  const std::int64_t head_dim = args.head_dim;
  const std::int64_t row_floats = args.value_head_dim;
  float* row = head.s;
  for (std::int64_t i = 0; i < head_dim; ++i, row += row_floats) {
    // Read before the stores to S, which the compiler must assume to alias.
    const Floats key_feature = simd::broadcast(key[i]);
    const Floats query_feature = simd::broadcast(query[i]);
    simd::unroll<vectors>([&](auto v) {
      const Floats state = simd::load(row + at(v)) + key_feature * value[v];
      simd::store(row + at(v), state);
      sum[v] += query_feature * state;
    });
  }
  simd::unroll<vectors>([&](auto v) { simd::store(head.out(token, 0) + at(v), sum[v]); });
}

/// step_columns for the columns after the last whole vector.
void step_last_columns(const LinearAttentionHead& head, std::int64_t token, std::int64_t column) {
  const AttentionArguments& args = head.args;
  for (; column < args.value_head_dim; ++column) {
    float sum = 0;
    for (std::int64_t i = 0; i < args.head_dim; ++i) {
      float& state = head.s[i * args.value_head_dim + column];
      state += head.key(token)[i] * head.value(token)[column];
      sum += head.query(token, 0)[i] * state;
    }
    head.out(token, 0)[column] = sum;
  }
}

/// Adds the token's key and computes the first query's output, in one pass over S.
void step(const LinearAttentionHead& head, std::int64_t token) {
  constexpr std::size_t kVectors = 4;
  constexpr std::int64_t kColumns = static_cast<std::int64_t>(kVectors) * kLanes;
  const std::int64_t columns = head.args.value_head_dim;
  std::int64_t column = 0;
  for (; column + kColumns <= columns; column += kColumns) {
    step_columns<kVectors>(head, token, column);
  }
  for (; column + kLanes <= columns; column += kLanes) step_columns<1>(head, token, column);
  step_last_columns(head, token, column);
  add_scaled(1, head.key(token), head.args.head_dim, head.z);
}

/// Computes a query's output from the current state.
void read_state(const LinearAttentionHead& head, std::int64_t token, std::int64_t member) {
  const AttentionArguments& args = head.args;
  multiply({head.query(token, member), 0, 1}, {head.s, args.value_head_dim},
           {head.out(token, member), 0}, {1, args.value_head_dim, args.head_dim},
           Output::overwrite);
}

/// Prefetch distance: rows are too far apart for hardware prefetchers.
constexpr std::int64_t kTokensAhead = 4;

/// Prefetches the rows of a token, if it exists.
[[gnu::always_inline]] inline void prefetch(const LinearAttentionHead& head, std::int64_t token) {
  const AttentionArguments& args = head.args;
  if (token >= args.queries) return;
  simd::prefetch_to_read(head.query(token, 0), args.head_dim);
  simd::prefetch_to_read(head.key(token), args.head_dim);
  simd::prefetch_to_read(head.value(token), args.value_head_dim);
  simd::prefetch_to_write(head.out(token, 0), args.value_head_dim);
}

}  // namespace

void attend_causally(const LinearAttentionHead& head, Range tokens) {
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    prefetch(head, token + kTokensAhead);
    const bool padding = head.is_padding(token);
    if (!padding) step(head, token);
    for (std::int64_t member = padding ? 0 : 1; member < head.group(); ++member) {
      read_state(head, token, member);
    }
    for (std::int64_t member = 0; member < head.group(); ++member) head.normalize(token, member);
  }
}

}  // namespace headroom::measured
