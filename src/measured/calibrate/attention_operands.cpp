#include "attention_operands.h"

#include <algorithm>

#include "headroom/expr.h"
#include "kernels/cache_line.h"

namespace headroom::measured {
namespace {

/// Sizes of one sequence; the heads of an output row are contiguous.
AttentionArguments arguments_of(const HeadSizes& sizes, std::int64_t queries, std::int64_t keys) {
  AttentionArguments args;
  args.kv_heads = sizes.kv_heads;
  args.heads = sizes.kv_heads * sizes.group;
  args.head_dim = args.value_head_dim = sizes.head_dim;
  args.queries = queries;
  args.keys = keys;
  args.out_stride = args.heads * sizes.head_dim;
  args.out_batch_stride = queries * args.out_stride;
  args.scale = 0.1F;
  return args;
}

}  // namespace

PromptOperands::PromptOperands(const HeadSizes& sizes, std::int64_t queries, std::int64_t keys)
    : args_(arguments_of(sizes, queries, keys)) {
  const std::int64_t width = args_.heads * args_.head_dim;
  const std::int64_t kv_width = args_.kv_heads * args_.head_dim;
  const std::int64_t row = width + 2 * kv_width;
  rows_ = random_floats(std::max(queries, keys) * row);
  out_ = random_floats(queries * width);
  args_.q = rows_.data();
  args_.k = args_.q + width;
  args_.v = args_.k + kv_width;
  args_.out = out_.data();
  args_.q_stride = args_.k_stride = args_.v_stride = row;
  args_.k_head_stride = args_.v_head_stride = args_.head_dim;
  args_.q_batch_stride = args_.k_batch_stride = args_.v_batch_stride =
      static_cast<std::int64_t>(rows_.size());
}

StepOperands::StepOperands(const HeadSizes& sizes, std::int64_t keys, std::int64_t bytes)
    : args_(arguments_of(sizes, 1, keys)), out_(random_floats(args_.out_stride)) {
  const std::int64_t values = keys * sizes.kv_heads * sizes.head_dim;
  const std::int64_t each = round_up(2 * values, kCacheLineFloats);
  const std::int64_t copies = std::max<std::int64_t>(bytes / 4 / each, 1);
  const float* const caches = shared_floats(copies * each + args_.out_stride);
  for (std::int64_t i = 0; i < copies; ++i) caches_.push_back(caches + i * each);
  args_.q = caches + copies * each;
  args_.out = out_.data();
  args_.q_stride = args_.out_stride;
  args_.q_batch_stride = args_.out_batch_stride;
  args_.k_stride = args_.v_stride = sizes.head_dim;
  args_.k_head_stride = args_.v_head_stride = keys * sizes.head_dim;
  args_.k_batch_stride = args_.v_batch_stride = 2 * values;
  (void)next();
}

const AttentionArguments& StepOperands::next() {
  args_.k = caches_[at_++ % caches_.size()];
  args_.v = args_.k + args_.keys * args_.k_stride * args_.kv_heads;
  return args_;
}

}  // namespace headroom::measured
