#include "sliding_chunks.h"

#include <algorithm>

#include "elementwise.h"
#include "softmax.h"

namespace headroom::measured {
namespace {

std::int64_t key_value_width(const ChunkArguments& args) {
  const AttentionArguments& block = args.rows.block;
  return block.kv_heads * (block.head_dim + block.value_head_dim);
}

std::int64_t padded_tokens(const ChunkArguments& args) { return args.rows.blocks() * args.half(); }

/// Row `row` of the scores of a head.
std::int64_t score_row(const ChunkArguments& args, std::int64_t item, std::int64_t head,
                       std::int64_t row) {
  const std::int64_t heads = args.rows.block.heads;
  return ((item * heads + head) * padded_tokens(args) + row) * args.columns();
}

/// Attention of `rows` queries of a sequence from row `first` on, with as many keys from there.
AttentionArguments part(const ChunkArguments& args, const float* padded, std::int64_t item,
                        std::int64_t first, std::int64_t rows) {
  AttentionArguments own = args.rows.block;
  const std::int64_t width = args.rows.row_width;
  own.q = padded + (item * args.rows.padded_rows() + args.half() + first) * width;
  own.k = own.q + own.heads * own.head_dim;
  own.v = own.k + own.kv_heads * own.head_dim;
  own.queries = rows;
  own.keys = rows;
  own.q_stride = own.k_stride = own.v_stride = width;
  own.k_head_stride = own.head_dim;
  own.v_head_stride = own.value_head_dim;
  own.out_stride = own.heads * own.value_head_dim;
  return own;
}

/// Replaces the keys of a part by those of the global tokens.
void use_global_keys(const ChunkArguments& args, const float* globals, std::int64_t item,
                     AttentionArguments& own) {
  own.keys = args.globals.per_sequence;
  own.k_stride = own.v_stride = key_value_width(args);
  own.k = globals + item * own.keys * own.k_stride;
  own.v = own.k + own.kv_heads * own.head_dim;
}

/// Copies the pairs of a chunk that lie within the windows of its queries. A pair of two chunks is
/// copied twice, with the same value.
void copy_window(const ChunkArguments& args, std::int64_t item, std::int64_t first,
                 const float* chunk, float* scores) {
  const std::int64_t half = args.half();
  const std::int64_t rows = 2 * half;
  for (std::int64_t head = 0; head < args.rows.block.heads; ++head) {
    for (std::int64_t query = 0; query < rows; ++query) {
      const std::int64_t begin = std::max<std::int64_t>(0, query - half);
      const std::int64_t end = std::min(rows, query + half + 1);
      float* const window =
          scores + score_row(args, item, head, first + query) + args.globals.per_sequence;
      std::copy(chunk + (head * rows + query) * rows + begin,
                chunk + (head * rows + query) * rows + end, window + begin - query + half);
    }
  }
}

std::int64_t global_scores(const ChunkArguments& args, const float* padded, const float* globals,
                           std::int64_t item, float* scratch, float* scores) {
  const std::int64_t keys = args.globals.per_sequence;
  std::int64_t flops = 0;
  for (std::int64_t first = 0; first < padded_tokens(args); first += args.half()) {
    AttentionArguments own = part(args, padded, item, first, args.half());
    use_global_keys(args, globals, item, own);
    flops += attention_scores(own, scratch);
    for (std::int64_t head = 0; head < own.heads; ++head) {
      for (std::int64_t query = 0; query < own.queries; ++query) {
        std::copy_n(scratch + (head * own.queries + query) * keys, keys,
                    scores + score_row(args, item, head, first + query));
      }
    }
  }
  return flops;
}

/// Marks the columns of a query's scores that it sees: global tokens, and those of its window that
/// are neither padding nor global, since these have columns of their own.
void mark_visible(const ChunkArguments& args, std::int64_t item, std::int64_t query,
                  const std::vector<std::uint8_t>& local, std::uint8_t* visible) {
  const std::int64_t globals = args.globals.per_sequence;
  for (std::int64_t i = 0; i < globals; ++i) visible[i] = args.globals.at(item, i) >= 0 ? 1 : 0;
  for (std::int64_t i = 0; i <= 2 * args.half(); ++i) {
    const std::int64_t key = query - args.half() + i;
    const bool inside = key >= 0 && key < args.rows.tokens;
    visible[globals + i] = inside ? local[static_cast<std::size_t>(key)] : 0;
  }
}

/// Tokens of a sequence that others see in their windows.
std::vector<std::uint8_t> local_keys(const ChunkArguments& args, std::int64_t item) {
  const std::int64_t tokens = args.rows.tokens;
  std::vector<std::uint8_t> local(static_cast<std::size_t>(tokens), 1);
  const std::uint8_t* const mask = args.rows.key_mask;
  if (mask != nullptr) std::copy_n(mask + item * tokens, tokens, local.begin());
  for (std::int64_t i = 0; i < args.globals.per_sequence; ++i) {
    const std::int64_t token = args.globals.at(item, i);
    if (token >= 0) local[static_cast<std::size_t>(token)] = 0;
  }
  return local;
}

bool is_padding(const ChunkArguments& args, std::int64_t item, std::int64_t query) {
  if (query >= args.rows.tokens) return true;
  const std::uint8_t* const mask = args.rows.key_mask;
  return mask != nullptr && mask[item * args.rows.tokens + query] == 0;
}

/// Context of a block within its windows: its probabilities with three blocks of keys, zero outside
/// the windows, times their values.
std::int64_t window_context(const ChunkArguments& args, AttentionArguments own, std::int64_t item,
                            std::int64_t first, const float* probabilities, float* spread) {
  const std::int64_t half = args.half();
  own.keys = 3 * half;
  own.v -= half * own.v_stride;
  std::fill_n(spread, own.heads * half * own.keys, 0.0F);
  for (std::int64_t head = 0; head < own.heads; ++head) {
    for (std::int64_t query = 0; query < half; ++query) {
      const float* const window =
          probabilities + score_row(args, item, head, first + query) + args.globals.per_sequence;
      std::copy_n(window, 2 * half + 1, spread + (head * half + query) * own.keys + query);
    }
  }
  return attention_context(own, spread);
}

/// Context of a block with the global keys.
std::int64_t global_context(const ChunkArguments& args, AttentionArguments own,
                            const float* globals, std::int64_t item, std::int64_t first,
                            const float* probabilities, float* gathered) {
  use_global_keys(args, globals, item, own);
  for (std::int64_t head = 0; head < own.heads; ++head) {
    for (std::int64_t query = 0; query < own.queries; ++query) {
      std::copy_n(probabilities + score_row(args, item, head, first + query), own.keys,
                  gathered + (head * own.queries + query) * own.keys);
    }
  }
  return attention_context(own, gathered);
}

}  // namespace

GlobalPositions global_positions(const std::vector<std::uint8_t>& mask,
                                 const std::uint8_t* key_mask, std::int64_t batch,
                                 std::int64_t per_sequence) {
  GlobalPositions positions{per_sequence, {}};
  const std::int64_t tokens = std::ssize(mask) / batch;
  for (std::int64_t item = 0; item < batch; ++item) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      const std::int64_t index = item * tokens + token;
      const bool read = key_mask == nullptr || key_mask[index] != 0;
      if (read && mask[static_cast<std::size_t>(index)] != 0) positions.tokens.push_back(token);
    }
    positions.tokens.resize(static_cast<std::size_t>((item + 1) * per_sequence), -1);
  }
  return positions;
}

std::int64_t ChunkArguments::global_floats() const {
  return rows.batch * globals.per_sequence * key_value_width(*this);
}

std::int64_t ChunkArguments::score_scratch_floats() const {
  return rows.block.heads * half() * (4 * half() + globals.per_sequence);
}

std::int64_t ChunkArguments::context_scratch_floats() const {
  return rows.context_floats() + rows.block.heads * half() * (3 * half() + globals.per_sequence);
}

void gather_global_keys(const ChunkArguments& args, const float* padded, float* globals) {
  const std::int64_t width = key_value_width(args);
  std::fill_n(globals, args.global_floats(), 0.0F);
  for (std::int64_t item = 0; item < args.rows.batch; ++item) {
    for (std::int64_t i = 0; i < args.globals.per_sequence; ++i) {
      const std::int64_t token = args.globals.at(item, i);
      if (token < 0) continue;
      std::copy_n(part(args, padded, item, token, 1).k, width,
                  globals + (item * args.globals.per_sequence + i) * width);
    }
  }
}

std::int64_t chunk_scores(const ChunkArguments& args, const float* padded, const float* globals,
                          float* scratch, float* scores) {
  const std::int64_t rows = 2 * args.half();
  // Columns beyond either end of a sequence are no pair of any chunk.
  std::fill_n(scores, score_row(args, args.rows.batch, 0, 0), 0.0F);
  float* const of_globals = scratch + args.rows.block.heads * rows * rows;
  std::int64_t flops = 0;
  for (std::int64_t item = 0; item < args.rows.batch; ++item) {
    for (std::int64_t first = 0; first + rows <= padded_tokens(args); first += args.half()) {
      flops += attention_scores(part(args, padded, item, first, rows), scratch);
      copy_window(args, item, first, scratch, scores);
    }
    if (args.globals.per_sequence == 0) continue;
    flops += global_scores(args, padded, globals, item, of_globals, scores);
  }
  return flops;
}

void chunk_softmax(const ChunkArguments& args, float* scores) {
  const std::int64_t columns = args.columns();
  for (std::int64_t item = 0; item < args.rows.batch; ++item) {
    const std::vector<std::uint8_t> local = local_keys(args, item);
#pragma omp parallel for schedule(static)
    for (std::int64_t query = 0; query < padded_tokens(args); ++query) {
      std::vector<std::uint8_t> visible(static_cast<std::size_t>(columns));
      mark_visible(args, item, query, local, visible.data());
      for (std::int64_t head = 0; head < args.rows.block.heads; ++head) {
        float* const row = scores + score_row(args, item, head, query);
        if (is_padding(args, item, query)) {
          std::fill_n(row, columns, 0.0F);
          continue;
        }
        softmax({.keys = columns,
                 .visible = columns,
                 .scale = args.rows.block.scale,
                 .key_mask = visible.data()},
                row);
      }
    }
  }
}

std::int64_t chunk_context(const ChunkArguments& args, const float* padded, const float* globals,
                           const float* probabilities, float* scratch, float* out) {
  const std::int64_t half = args.half();
  const std::int64_t width = args.rows.block.heads * args.rows.block.value_head_dim;
  float* const spread = scratch + args.rows.context_floats();
  float* const of_globals = spread + args.rows.block.heads * half * 3 * half;
  std::int64_t flops = 0;
  for (std::int64_t item = 0; item < args.rows.batch; ++item) {
    for (std::int64_t first = 0; first < padded_tokens(args); first += half) {
      AttentionArguments own = part(args, padded, item, first, half);
      own.out = scratch;
      const std::int64_t rows = std::clamp<std::int64_t>(args.rows.tokens - first, 0, half);
      float* const to = out + (item * args.rows.tokens + first) * width;
      flops += window_context(args, own, item, first, probabilities, spread);
      std::copy_n(scratch, rows * width, to);
      if (args.globals.per_sequence == 0) continue;
      flops += global_context(args, own, globals, item, first, probabilities, of_globals);
      if (rows > 0) add_residual(to, scratch, rows * width);
    }
  }
  return flops;
}

}  // namespace headroom::measured
