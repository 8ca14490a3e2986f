#include <array>

#include "linear_attention_head.h"
#include "simd.h"
#include "tile_multiply.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

/// Adds a key to some columns of S, and stores what the first query of the group reads there.
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
  float* row = head.s;
  for (std::int64_t i = 0; i < args.head_dim; ++i, row += args.value_head_dim) {
    simd::unroll<vectors>([&](auto v) {
      const Floats state = simd::load(row + at(v)) + key[i] * value[v];
      simd::store(row + at(v), state);
      sum[v] += query[i] * state;
    });
  }
  simd::unroll<vectors>([&](auto v) { simd::store(head.out(token, 0) + at(v), sum[v]); });
}

/// The same for the columns behind the last whole vector.
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

/// Adds the token's key and answers the first query of its group, in one pass over S.
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
  for (std::int64_t i = 0; i < head.args.head_dim; ++i) head.z[i] += head.key(token)[i];
}

/// Answers a query from the state as it is.
void read(const LinearAttentionHead& head, std::int64_t token, std::int64_t member) {
  const AttentionArguments& args = head.args;
  multiply({head.query(token, member), 0, 1}, {head.s, args.value_head_dim},
           {head.out(token, member), 0}, {1, args.value_head_dim, args.head_dim}, Sum::begin);
}

}  // namespace

void attend_causally(const LinearAttentionHead& head) {
  const AttentionArguments& args = head.args;
  for (std::int64_t token = 0; token < args.queries; ++token) {
    const bool padding = head.is_padding(token);
    if (!padding) step(head, token);
    for (std::int64_t member = padding ? 0 : 1; member < head.group(); ++member) {
      read(head, token, member);
    }
    for (std::int64_t member = 0; member < head.group(); ++member) {
      divide_row(head.out(token, member), args.value_head_dim,
                 dot(head.query(token, member), head.z, args.head_dim) + head.eps);
    }
  }
}

}  // namespace headroom::measured
