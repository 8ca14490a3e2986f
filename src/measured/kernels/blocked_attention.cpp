#include "blocked_attention.h"

#include <algorithm>

namespace headroom::measured {
namespace {

/// Calls body(arguments of the block, its index) for every block of every sequence. The arguments
/// have the rows of `padded`.
template <class Body>
void for_blocks(const BlockedAttentionArguments& args, const float* padded, const Body& body) {
  AttentionArguments block = args.block;
  block.q_stride = args.row_width;
  block.k_stride = args.row_width;
  block.v_stride = args.row_width;
  block.k_head_stride = block.head_dim;
  block.v_head_stride = block.value_head_dim;
  block.out_stride = block.heads * block.value_head_dim;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t index = 0; index < args.blocks(); ++index) {
      const float* const first =
          padded + (item * args.padded_rows() + index * block.queries) * args.row_width;
      block.q = first + block.queries * args.row_width;
      block.k = first + block.heads * block.head_dim;
      block.v = block.k + block.kv_heads * block.head_dim;
      body(block, item * args.blocks() + index);
    }
  }
}

std::int64_t scores_of_block(const BlockedAttentionArguments& args) {
  return args.block.heads * args.block.queries * args.block.keys;
}

}  // namespace

void pad_rows(const BlockedAttentionArguments& args, float* padded) {
  std::fill_n(padded, args.padded_floats(), 0.0F);
  for (std::int64_t item = 0; item < args.batch; ++item) {
    std::copy_n(args.rows + item * args.tokens * args.row_width, args.tokens * args.row_width,
                padded + (item * args.padded_rows() + args.block.queries) * args.row_width);
  }
}

std::vector<std::uint8_t> padded_key_mask(const BlockedAttentionArguments& args) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    const auto before = static_cast<std::size_t>(item * args.padded_rows() + args.block.queries);
    mask.resize(before, 0);
    for (std::int64_t i = 0; i < args.tokens; ++i) {
      mask.push_back(args.key_mask == nullptr ? 1 : args.key_mask[item * args.tokens + i]);
    }
    mask.resize(static_cast<std::size_t>((item + 1) * args.padded_rows()), 0);
  }
  return mask;
}

std::int64_t blocked_scores(const BlockedAttentionArguments& args, const float* padded,
                            float* scores) {
  std::int64_t flops = 0;
  for_blocks(args, padded, [&](const AttentionArguments& block, std::int64_t index) {
    flops += attention_scores(block, scores + index * scores_of_block(args));
  });
  return flops;
}

void blocked_softmax(const BlockedAttentionArguments& args,
                     const std::vector<std::uint8_t>& key_mask, float* scores) {
  AttentionArguments block = args.block;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t index = 0; index < args.blocks(); ++index) {
      block.key_mask = key_mask.data() + item * args.padded_rows() + index * block.queries;
      attention_softmax(block, scores + (item * args.blocks() + index) * scores_of_block(args));
    }
  }
}

std::int64_t blocked_context(const BlockedAttentionArguments& args, const float* padded,
                             const float* probabilities, float* scratch, float* out) {
  const std::int64_t width = args.block.heads * args.block.value_head_dim;
  std::int64_t flops = 0;
  for_blocks(args, padded, [&](AttentionArguments block, std::int64_t index) {
    block.out = scratch;
    flops += attention_context(block, probabilities + index * scores_of_block(args));
    const std::int64_t item = index / args.blocks();
    const std::int64_t first = index % args.blocks() * block.queries;
    const std::int64_t rows = std::min(block.queries, args.tokens - first);
    std::copy_n(scratch, rows * width, out + (item * args.tokens + first) * width);
  });
  return flops;
}

}  // namespace headroom::measured
