#include "transient_global.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"
#include "tile_multiply.h"

namespace headroom::measured {
namespace {

/// Added to the scores of masked keys, as in the reference code: softmax makes them 0, and the
/// row of a query without any key stays finite.
constexpr float kMasked = -1e10F;

bool is_read(const std::uint8_t* key_mask, std::int64_t index) {
  return key_mask == nullptr || key_mask[index] != 0;
}

/// Blocks of the tokens of one sequence by position alone. The reference code sums 1/size in
/// float32 and rounds down, which puts a token before its block if size is no power of two and the
/// rounded sum falls short.
std::vector<std::int64_t> blocks_of_positions(std::int64_t tokens, std::int64_t size) {
  std::vector<std::int64_t> blocks;
  const float step = 1.0F / static_cast<float>(size);
  double sum = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    sum += static_cast<double>(step);
    const float before = static_cast<float>(sum) - step;
    blocks.push_back(static_cast<std::int64_t>(std::floor(1.0F + before - 1.0F)));
  }
  return blocks;
}

/// Copies row `index` of a sequence of `tokens` rows, or zeros beyond either end.
void copy_row(const float* rows, std::int64_t index, std::int64_t tokens, std::int64_t width,
              float* to) {
  if (index < 0 || index >= tokens) {
    std::fill_n(to, width, 0.0F);
  } else {
    std::copy_n(rows + index * width, width, to);
  }
}

/// Keys and values of one block: those of three blocks, then the global ones.
void gather_keys(const TransientGlobalArguments& args, std::int64_t item, std::int64_t index,
                 float* to) {
  const std::int64_t width = args.key_value_width();
  const float* const rows = args.key_values + item * args.tokens * width;
  const std::int64_t first = (index - 1) * args.block.queries;
  for (std::int64_t i = 0; i < 3 * args.block.queries; ++i) {
    copy_row(rows, first + i, args.tokens, width, to + i * width);
  }
  std::copy_n(args.global_key_values + item * args.globals() * width, args.globals() * width,
              to + 3 * args.block.queries * width);
}

/// Calls body(arguments of the block, its index in the sequence, its index in the batch) for every
/// block, with its keys and values.
template <class Body>
void for_blocks(const TransientGlobalArguments& args, float* scratch, const Body& body) {
  AttentionArguments block = args.block;
  block.q_stride = args.query_width();
  block.k_stride = args.key_value_width();
  block.v_stride = block.k_stride;
  block.k_head_stride = block.head_dim;
  block.v_head_stride = block.value_head_dim;
  block.out_stride = block.heads * block.value_head_dim;
  float* const keys = scratch + block.queries * args.query_width();
  block.q = scratch;
  block.k = keys;
  block.v = keys + block.kv_heads * block.head_dim;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t index = 0; index < args.blocks(); ++index) {
      gather_keys(args, item, index, keys);
      body(block, item, index);
    }
  }
}

std::int64_t scores_of_block(const TransientGlobalArguments& args) {
  return args.block.heads * args.block.queries * args.block.keys;
}

/// Bias of every distance from -`reach` to `reach` for one head.
std::vector<float> biases_of(const RelativeBiasArguments& args, const float* table,
                             std::int64_t reach, std::int64_t head) {
  std::vector<float> biases;
  for (std::int64_t distance = -reach; distance <= reach; ++distance) {
    biases.push_back(table[relative_bucket(args, distance) * args.heads + head]);
  }
  return biases;
}

/// One query of one sequence.
struct Query {
  std::int64_t item = 0;
  std::int64_t token = 0;
};

/// Biases of a query with the tokens around its block; `biases` reach two blocks far.
void fill_local(const TransientGlobalBias& args, const TransientGlobalBlocks& blocks, Query query,
                const std::vector<float>& biases, float* out) {
  const auto reads = [&](std::int64_t token) {
    return token >= 0 && token < blocks.tokens &&
           is_read(args.key_mask, query.item * blocks.tokens + token);
  };
  const std::int64_t first = (query.token / args.block - 1) * args.block;
  const bool is_query = reads(query.token);
  for (std::int64_t i = 0; i < 3 * args.block; ++i) {
    const std::int64_t distance = first + i - query.token;
    const bool seen = is_query && std::abs(distance) < args.block && reads(first + i);
    out[i] = biases[static_cast<std::size_t>(distance + 2 * args.block)] + (seen ? 0 : kMasked);
  }
}

/// Biases of a query with the global tokens; `biases` reach as far as there are any. Padding sees
/// those that no token belongs to, in the reference code too.
void fill_global(const TransientGlobalBias& args, const TransientGlobalBlocks& blocks, Query query,
                 const std::vector<float>& biases, float* out) {
  const auto row = static_cast<std::size_t>(query.item * blocks.tokens + query.token);
  const bool is_query = is_read(args.key_mask, static_cast<std::int64_t>(row));
  const std::int64_t used = blocks.used[static_cast<std::size_t>(query.item)];
  for (std::int64_t i = 0; i < blocks.globals; ++i) {
    const bool seen = is_query == (i < used);
    const std::int64_t distance = i - blocks.block[row];
    out[i] = biases[static_cast<std::size_t>(distance + blocks.globals)] + (seen ? 0 : kMasked);
  }
}

}  // namespace

TransientGlobalBlocks transient_global_blocks(const std::uint8_t* key_mask, std::int64_t batch,
                                              std::int64_t tokens, std::int64_t size) {
  TransientGlobalBlocks blocks{batch, tokens, tokens / size, {}, {}};
  const std::vector<std::int64_t> positions = blocks_of_positions(tokens, size);
  for (std::int64_t item = 0; item < batch; ++item) {
    std::int64_t whole = 0;  // blocks whose last token is none of padding
    for (std::int64_t i = size - 1; i < tokens; i += size) {
      if (is_read(key_mask, item * tokens + i)) ++whole;
    }
    std::int64_t last = -1;
    for (std::int64_t i = 0; i < tokens; ++i) {
      const bool read = is_read(key_mask, item * tokens + i);
      const std::int64_t block = read ? positions[static_cast<std::size_t>(i)] : -1;
      last = std::max(last, block);
      blocks.block.push_back(std::min(block, whole - 1));
    }
    blocks.used.push_back(std::min(last, whole - 1) + 1);
  }
  return blocks;
}

void sum_transient_blocks(const TransientGlobalBlocks& blocks, std::int64_t width,
                          const float* rows, float* sums) {
  std::fill_n(sums, blocks.batch * blocks.globals * width, 0.0F);
  for (std::int64_t item = 0; item < blocks.batch; ++item) {
    for (std::int64_t i = 0; i < blocks.tokens; ++i) {
      const std::int64_t row = item * blocks.tokens + i;
      const std::int64_t block = blocks.block[static_cast<std::size_t>(row)];
      if (block < 0) continue;
      add_scaled(1.0F, rows + row * width, width, sums + (item * blocks.globals + block) * width);
    }
  }
}

void fill_transient_global_bias(const TransientGlobalBias& args,
                                const TransientGlobalBlocks& blocks, float* out) {
  const std::int64_t keys = 3 * args.block + blocks.globals;
  const std::int64_t per_sequence = (blocks.tokens + args.block - 1) / args.block;
#pragma omp parallel for schedule(static)
  for (std::int64_t head = 0; head < args.tokens.heads; ++head) {
    const auto local = biases_of(args.tokens, args.tokens.table, 2 * args.block, head);
    const auto global = biases_of(args.tokens, args.global_table, blocks.globals, head);
    for (std::int64_t index = 0; index < blocks.batch * per_sequence; ++index) {
      for (std::int64_t i = 0; i < args.block; ++i) {
        const Query query{index / per_sequence, index % per_sequence * args.block + i};
        float* const row = out + ((index * args.tokens.heads + head) * args.block + i) * keys;
        fill_local(args, blocks, query, local, row);
        float* const behind = row + 3 * args.block;
        std::fill_n(behind, blocks.globals, 0.0F);
        if (query.token < blocks.tokens) fill_global(args, blocks, query, global, behind);
      }
    }
  }
}

std::int64_t transient_global_scores(const TransientGlobalArguments& args, float* scratch,
                                     float* scores) {
  std::int64_t flops = 0;
  for_blocks(args, scratch,
             [&](const AttentionArguments& block, std::int64_t item, std::int64_t index) {
               const float* const rows = args.queries + item * args.tokens * args.query_width();
               for (std::int64_t i = 0; i < block.queries; ++i) {
                 copy_row(rows, index * block.queries + i, args.tokens, args.query_width(),
                          scratch + i * args.query_width());
               }
               const std::int64_t at = item * args.blocks() + index;
               flops += attention_scores(block, scores + at * scores_of_block(args));
             });
  return flops;
}

void transient_global_softmax(const TransientGlobalArguments& args, float* scores) {
  AttentionArguments block = args.block;
  for (std::int64_t index = 0; index < args.batch * args.blocks(); ++index) {
    block.bias = args.bias + index * scores_of_block(args);
    attention_softmax(block, scores + index * scores_of_block(args));
  }
}

std::int64_t transient_global_context(const TransientGlobalArguments& args,
                                      const float* probabilities, float* scratch, float* context,
                                      float* out) {
  const std::int64_t width = args.block.heads * args.block.value_head_dim;
  std::int64_t flops = 0;
  for_blocks(args, scratch, [&](AttentionArguments block, std::int64_t item, std::int64_t index) {
    block.out = context;
    const std::int64_t at = item * args.blocks() + index;
    flops += attention_context(block, probabilities + at * scores_of_block(args));
    const std::int64_t first = index * block.queries;
    const std::int64_t rows = std::min(block.queries, args.tokens - first);
    std::copy_n(context, rows * width, out + (item * args.tokens + first) * width);
  });
  return flops;
}

}  // namespace headroom::measured
