#include "linear_attention.h"

#include <algorithm>

#include "linear_attention_head.h"
#include "parallel.h"
#include "tile_multiply.h"
#include "vector_math.h"

namespace headroom::measured {

namespace {

using simd::kLanes;

/// Tokens that are gone through at a time: their rows, which every part of a product reads anew,
/// stay in a near cache.
constexpr std::int64_t kTokens = 128;

/// Calls body(tokens) for all of a range, kTokens at a time.
template <class Body>
void for_tokens(Range all, const Body& body) {
  for (std::int64_t begin = all.begin; begin < all.end; begin += kTokens) {
    body(Range{begin, std::min(all.end, begin + kTokens)});
  }
}

/// S and Z over keys none of which is padding.
void add_keys(const LinearAttentionHead& head, Range keys) {
  const AttentionArguments& args = head.args;
  multiply({head.key(keys.begin), 1, args.k_stride}, {head.value(keys.begin), args.v_stride},
           {head.s, args.value_head_dim}, {args.head_dim, args.value_head_dim, keys.size()},
           Sum::go_on);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    const float* features = head.key(key);
    for (std::int64_t i = 0; i < args.head_dim; ++i) head.z[i] += features[i];
  }
}

/// S and Z over all keys, by runs without padding.
void sum_keys(const LinearAttentionHead& head) {
  const AttentionArguments& args = head.args;
  std::fill_n(head.s, args.head_dim * args.value_head_dim, 0.0F);
  std::fill_n(head.z, args.head_dim, 0.0F);
  std::int64_t begin = 0;
  for (std::int64_t key = 0; key <= args.keys; ++key) {
    if (key < args.keys && !head.is_padding(key)) continue;
    for_tokens({begin, key}, [&](Range keys) { add_keys(head, keys); });
    begin = key + 1;
  }
}

/// Answers some queries of one head.
void answer(const LinearAttentionHead& head, std::int64_t member, Range queries) {
  const AttentionArguments& args = head.args;
  multiply({head.query(queries.begin, member), args.q_stride, 1}, {head.s, args.value_head_dim},
           {head.out(queries.begin, member), args.out_stride},
           {queries.size(), args.value_head_dim, args.head_dim}, Sum::begin);
  for (std::int64_t token = queries.begin; token < queries.end; ++token) {
    divide_row(head.out(token, member), args.value_head_dim,
               dot(head.query(token, member), head.z, args.head_dim) + head.eps);
  }
}

void attend_all(const LinearAttentionHead& head) {
  sum_keys(head);
  for (std::int64_t member = 0; member < head.group(); ++member) {
    for_tokens({0, head.args.queries}, [&](Range queries) { answer(head, member, queries); });
  }
}

std::int64_t state_of_head(const AttentionArguments& args) {
  return args.head_dim * (args.value_head_dim + 1);
}

}  // namespace

void feature_map(float* x, std::int64_t rows, std::int64_t width, std::int64_t stride) {
#pragma omp parallel for if (rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* at = x + row * stride;
    std::int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      simd::store(at + i, simd::elu_plus_one(simd::load(at + i)));
    }
    if (i == width) continue;
    simd::store_first(at + i, simd::elu_plus_one(simd::load_first(at + i, width - i)), width - i);
  }
}

std::int64_t linear_attention_state_floats(const AttentionArguments& args) {
  return args.batch * args.kv_heads * state_of_head(args);
}

std::int64_t linear_attention(const AttentionArguments& args, float eps, float* state) {
#pragma omp parallel for schedule(static)
  for (std::int64_t head = 0; head < args.batch * args.kv_heads; ++head) {
    float* s = state + head * state_of_head(args);
    const LinearAttentionHead at = {args,
                                    head / args.kv_heads,
                                    head % args.kv_heads,
                                    eps,
                                    s,
                                    s + args.head_dim * args.value_head_dim};
    if (args.causal) {
      attend_causally(at);
    } else {
      attend_all(at);
    }
  }
  const std::int64_t product = 2 * args.head_dim * args.value_head_dim;
  return args.batch * (args.kv_heads * args.keys * product +
                       args.heads * args.queries * (product + 2 * args.head_dim));
}

}  // namespace headroom::measured
