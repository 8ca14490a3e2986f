// Steps of eager, fused and linear attention, with and without a KV-cache.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "headroom/error.h"
#include "kernels/alibi.h"
#include "kernels/linear_attention.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Widths of query, key and value, concatenated in one row.
struct RowLayout {
  std::int64_t query;
  std::int64_t key;
  std::int64_t value;

  [[nodiscard]] std::int64_t row() const { return query + key + value; }
};

RowLayout layout_of(const AttentionArguments& args) {
  return {args.heads * args.head_dim, args.kv_heads * args.head_dim,
          args.kv_heads * args.value_head_dim};
}

/// Layout of one sequence in the KV-cache: all keys, then all values, each head contiguous, so that
/// a decode step reads every head sequentially. [kv_heads, capacity, head_dim | value_head_dim]
struct CacheLayout {
  std::int64_t capacity = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_head_dim = 0;

  /// Copies a token's row of keys and values into `slot` of `sequence`.
  void store(const float* token, std::int64_t slot, float* sequence) const {
    for (std::int64_t head = 0; head < kv_heads; ++head) {
      std::copy_n(token + head * head_dim, head_dim,
                  sequence + (head * capacity + slot) * head_dim);
    }
    const float* const values = token + kv_heads * head_dim;
    float* const to = sequence + kv_heads * capacity * head_dim;
    for (std::int64_t head = 0; head < kv_heads; ++head) {
      std::copy_n(values + head * value_head_dim, value_head_dim,
                  to + (head * capacity + slot) * value_head_dim);
    }
  }
};

std::int64_t attention_operand_floats(const AttentionArguments& args) {
  const std::int64_t queries = args.batch * args.queries * args.heads;
  const std::int64_t keys = args.batch * args.keys * args.kv_heads;
  return queries * (args.head_dim + args.value_head_dim) +
         keys * (args.head_dim + args.value_head_dim);
}

std::int64_t attention_score_floats(const AttentionArguments& args) {
  return args.batch * args.heads * args.queries * args.keys;
}

/// The arguments of attention within some images of a tower.
AttentionArguments within(const ImageRows& images, AttentionArguments args) {
  args.batch = images.images;
  args.queries = images.queries;
  args.keys = images.rows;
  args.q += images.first_query * args.q_stride;
  args.k += images.first_row * args.k_stride + images.sequence * args.k_batch_stride;
  args.v += images.first_row * args.v_stride + images.sequence * args.v_batch_stride;
  if (images.key_mask) args.key_mask = images.key_mask->data();
  if (args.out != nullptr) args.out += images.first_query * args.out_stride;
  args.q_batch_stride = images.queries * args.q_stride;
  args.k_batch_stride = images.rows * args.k_stride;
  args.v_batch_stride = images.rows * args.v_stride;
  args.out_batch_stride = images.queries * args.out_stride;
  return args;
}

/// Sums `run(arguments, first score)` over the images of a tower; outside, calls it once.
template <class Run>
StepCount sum_over_images(const std::vector<ImageRows>& images, const AttentionArguments& args,
                          const Run& run) {
  if (images.empty()) return run(args, 0);
  StepCount sum;
  for (const ImageRows& part : images) {
    const StepCount count = run(within(part, args), args.heads * part.first_pair);
    sum.matrix_flops += count.matrix_flops;
    sum.bytes += count.bytes;
  }
  return sum;
}

/// Throws if a hidden token comes before a visible one of its sequence: a cache holds the keys of
/// all tokens. Hidden ones at the end need no mask, since no token sees later ones.
void require_padding_at_end(const TokenInputs& tokens) {
  for (std::int64_t row = 0; row < tokens.batch; ++row) {
    const std::span mask = std::span(tokens.key_mask)
                               .subspan(static_cast<std::size_t>(row * tokens.seq_len),
                                        static_cast<std::size_t>(tokens.seq_len));
    const auto hidden = std::ranges::find(mask, 0);
    if (std::find(hidden, mask.end(), 1) == mask.end()) continue;
    throw Error(ErrorCode::invalid_input,
                fmt::format("sequence {} has hidden tokens before visible ones", row),
                "attention_mask", "leave out the padding, or put it at the end of the sequence");
  }
}

}  // namespace

bool StepBuilder::reads_earlier_projections() const {
  if (is_cross_attention() || node_->inputs.size() < 2) return false;
  return program_.graph_.tensors[node_->inputs[1]].type == ElementType::activation;
}

bool StepBuilder::has_queries_alone(const AttentionArguments& args) const {
  const Expr& width = program_.graph_.tensors[node_->inputs[0]].shape.back();
  return reads_earlier_projections() && integer(width) == layout_of(args).query;
}

std::int64_t StepBuilder::cached_keys() const {
  return integer(program_.graph_.tensors[node_->inputs[1]].shape[1]);
}

bool StepBuilder::is_cross_attention() const { return node_->path.starts_with("cross_attention"); }

const std::uint8_t* StepBuilder::key_mask(KeySource keys) const {
  const ModelInputs& inputs = program_.inputs_;
  if (is_tower()) return nullptr;
  if (is_cross_attention()) {
    return inputs.encoder->key_mask.empty() ? nullptr : inputs.encoder->key_mask.data();
  }
  const TokenInputs& tokens = this->tokens();
  if (tokens.key_mask.empty()) return nullptr;
  if (keys == KeySource::projections) return tokens.key_mask.data();
  require_padding_at_end(tokens);
  return nullptr;
}

AttentionArguments StepBuilder::attention_sizes(const AttentionShape& shape) const {
  AttentionArguments args;
  args.batch = integer(shape.batch);
  args.heads = integer(shape.heads);
  args.kv_heads = integer(shape.kv_heads);
  args.head_dim = integer(shape.head_dim);
  args.value_head_dim = integer(shape.value_head_dim);
  args.queries = integer(shape.queries);
  args.keys = integer(shape.keys);
  return args;
}

void StepBuilder::set_operands(AttentionArguments& args, KeySource keys, ValuePlace values) const {
  const RowLayout layout = layout_of(args);
  const bool packed_row = keys == KeySource::projections && !is_cross_attention();
  const bool in_keys = values == ValuePlace::inside_keys;
  args.q = input(0);
  args.q_stride = packed_row ? layout.row() : layout.query;
  // With a KV-cache, queries are part of the row of all projections, unless they are a tensor
  // alone.
  if (!packed_row) args.q_stride = integer(program_.graph_.tensors[node_->inputs[0]].shape.back());
  args.q_batch_stride = args.queries * args.q_stride;
  args.out_stride = args.heads * args.value_head_dim;
  args.out_batch_stride = args.queries * args.out_stride;
  args.k_stride = packed_row ? layout.row() : layout.key + (in_keys ? 0 : layout.value);
  args.v_stride = args.k_stride;
  args.k_batch_stride = args.keys * args.k_stride;
  args.k_head_stride = args.head_dim;
  args.v_head_stride = args.value_head_dim;
  if (keys == KeySource::cache) {
    // All keys of a sequence precede all its values; each head is contiguous.
    const std::int64_t rows = cached_keys();
    args.k_batch_stride = rows * args.k_stride;
    args.k_stride = args.head_dim;
    args.v_stride = in_keys ? args.head_dim : args.value_head_dim;
    args.k_head_stride = rows * args.k_stride;
    args.v_head_stride = rows * args.v_stride;
  }
  args.v_batch_stride = args.k_batch_stride;
}

void StepBuilder::apply_score_shaping(AttentionArguments& args, const ScoreShaping& shaping) {
  switch (shaping.scale) {
    case AttentionScale::inverse_sqrt_head_dim:
      args.scale = 1.0F / std::sqrt(static_cast<float>(args.head_dim));
      break;
    case AttentionScale::fixed:
      args.scale = static_cast<float>(shaping.fixed_scale);
      break;
    case AttentionScale::none:
      break;
  }
  args.soft_cap = static_cast<float>(shaping.soft_cap);
  args.window = shaping.window;
  if (shaping.bias == ScoreBias::relative_position) {
    const TensorId bias = node_->inputs.back();
    args.bias = program_.pointer(bias);
    const bool per_sequence = program_.graph_.tensors[bias].shape.size() == 4;
    if (per_sequence) args.bias_batch_stride = args.heads * args.queries * args.keys;
  }
  if (shaping.mask == KeyMask::indexer) use_choice(args);
  if (shaping.bias == ScoreBias::alibi) {
    const GroupPosition tensor = tensor_position();
    std::vector<float> slopes = alibi_slopes(shaping.alibi, args.heads * tensor.ranks);
    slopes.erase(slopes.begin(), slopes.begin() + tensor.rank * args.heads);
    slopes_ = std::make_shared<const std::vector<float>>(std::move(slopes));
    args.slopes = slopes_->data();
    args.alibi_order = shaping.alibi.order;
    args.slopes_of_distance = !args.causal;
  }
}

void StepBuilder::use_choice(AttentionArguments& args) const {
  const TensorId choice = node_->inputs.back();
  args.choice = program_.pointer(choice);
  const std::vector<Expr>& shape = program_.graph_.tensors[choice].shape;
  if (shape.size() < 4) return;
  const GroupPosition tensor = tensor_position();
  args.choosers = integer(shape[1]);
  args.heads_per_chooser = args.heads * tensor.ranks / args.choosers;
  args.first_head = tensor.rank * args.heads;
}

void StepBuilder::use_earlier_rows(AttentionArguments& args) const {
  args.q_stride = integer(program_.graph_.tensors[node_->inputs[0]].shape.back());
  args.q_batch_stride = args.queries * args.q_stride;
  args.k_stride = integer(program_.graph_.tensors[node_->inputs[1]].shape.back());
  args.v_stride = args.k_stride;
  args.k_batch_stride = args.keys * args.k_stride;
  args.v_batch_stride = args.k_batch_stride;
}

template <class Op>
StepBuilder::Arguments StepBuilder::attention(const Op& op) {
  AttentionArguments args = attention_sizes(op.shape);
  args.causal = op.masking == Masking::causal;
  // Without image_pairs, a probe per image attends to equally many rows of each.
  image_rows_ =
      op.shape.image_pairs.is_zero() ? std::vector<ImageRows>() : image_rows(op.shape.scope);
  if (is_cross_attention() && !is_tower()) image_rows_ = rows_of_cross_attention();
  if constexpr (requires { op.shaping; }) apply_score_shaping(args, op.shaping);
  KeySource keys = KeySource::projections;
  ValuePlace values = ValuePlace::after_keys;
  if constexpr (requires { op.keys; }) {
    keys = op.keys;
    values = op.values;
  }
  // In prefill a windowed cache holds the last keys only, so layers share the rows before it.
  if constexpr (requires { op.shaping; }) apply_lookahead(args, op.shaping.lookahead);
  const bool shares =
      keys == KeySource::cache ? reads_earlier_projections() : has_queries_alone(args);
  if (shares) keys = KeySource::projections;
  args.key_mask = image_rows_.empty() ? key_mask(keys) : nullptr;
  set_operands(args, keys, values);
  if (shares) use_earlier_rows(args);
  const bool cross = is_cross_attention();
  const bool from_cache = keys == KeySource::cache;
  const bool windowed = from_cache && args.window.kind != WindowKind::none;
  const std::int64_t cached = from_cache ? cached_keys() : args.keys;
  const std::int64_t chunk =
      windowed && args.window.kind == WindowKind::chunked ? args.window.size : 0;
  if (windowed) {
    if (args.queries > 1) {
      throw Error(ErrorCode::invalid_input, "layers with a window decode one token per step",
                  program_.spec_.name, "use a sequence length of 1, or the prefill phase");
    }
    // The cache stores just the window, in any order. In a new chunk, the rest of the previous
    // chunk follows and must be masked.
    args.causal = chunk > 0;
    args.window = {};
  }
  // One kernel reads no keys of earlier chunks; eager operators score all that are held.
  const bool skips_chunks = chunk > 0 && std::is_same_v<Op, FusedAttention>;
  const RowLayout layout = layout_of(args);
  std::int64_t value_offset = from_cache ? cached * layout.key : layout.key;
  if (values == ValuePlace::inside_keys) value_offset = 0;
  const std::string cache = cross ? "cross_attention.kv_cache" : "attention.kv_cache";
  const float* projected_keys = cross ? nullptr : args.q + layout.query;
  if (cross && !from_cache) projected_keys = input(1);
  if (shares) projected_keys = input(1) + args.k_stride - layout.key - layout.value;
  const auto source =
      from_cache && !cross ? program_.source_layer(node_->inputs[1], block_, *node_) : std::nullopt;
  return [=, program = &program_, slopes = slopes_, spans = spans_](std::int64_t layer) mutable {
    args.k = from_cache ? program->cache_.data(cache, source.value_or(layer)) : projected_keys;
    // Layers of other mixers, whose arguments are only looked at, have no cache.
    args.v = args.k == nullptr ? nullptr : args.k + value_offset;
    if (from_cache && !cross) {
      args.past = windowed ? 0 : program->lengths_.past;
      if (chunk > 0) args.past = program->lengths_.past % chunk;
      args.keys = std::min(cached, program->lengths_.past + args.queries);
      if (skips_chunks) args.keys = args.past + args.queries;
    }
    return args;
  };
}

StepBuilder::Run StepBuilder::operator()(const KvCacheAppend& op) {
  const bool cross = is_cross_attention();
  const Lengths* const lengths = &program_.lengths_;
  const std::int64_t batch = lengths->batch;
  const std::int64_t rows = integer(op.kept.rows) / batch;
  const std::int64_t row = integer(op.kept.row_width);
  const std::int64_t kept = integer(op.kept.head_dim);
  const float* const from = input(0) + integer(op.kept.first);
  const Tensor& cache_tensor = program_.graph_.tensors[node_->inputs.at(1)];
  const std::string name = cache_tensor.name;
  CacheLayout layout;
  layout.capacity = cached_keys();
  layout.kv_heads = integer(op.kv_heads);
  layout.head_dim = integer(op.head_dim);
  layout.value_head_dim = kept / layout.kv_heads - layout.head_dim;
  const std::int64_t rate = op.rate;
  return [=, cache = &program_.cache_, copy_input = input_copy()](std::int64_t layer) {
    copy_input();
    float* const to = cache->data(name, layer);
    const std::int64_t past = cross ? 0 : lengths->past / rate;
    // Of rows that each cover several tokens, those that the new tokens complete.
    const std::int64_t tokens =
        rate == 1 ? rows : (lengths->past + lengths->seq_len) / rate - lengths->past / rate;
    // Skip tokens that later tokens of this step would overwrite.
    const std::int64_t first = std::max<std::int64_t>(0, tokens - layout.capacity);
    for (std::int64_t b = 0; b < batch; ++b) {
      float* const sequence = to + b * layout.capacity * kept;
      for (std::int64_t s = first; s < tokens; ++s) {
        layout.store(from + (b * rows + s) * row, (past + s) % layout.capacity, sequence);
      }
    }
    return StepCount{0, 2 * batch * (tokens - first) * kept * kFloatBytes};
  };
}

StepBuilder::Sinks StepBuilder::sinks() const {
  const bool has_sinks = !node_->weights.empty();
  const std::string path = has_sinks ? weight_path(0) : std::string();
  return [path, weights = &program_.weights_](std::int64_t layer) {
    return path.empty() ? nullptr : weights->values(path, layer);
  };
}

StepBuilder::Run StepBuilder::operator()(const AttentionScores& op) {
  if (mixes_keys()) return mixed_scores(op);
  if (op.shape.is_chunked()) return chunk_scores(op);
  if (op.shape.has_transient_keys()) return transient_scores(op);
  if (op.shape.is_blocked()) return blocked_scores(op);
  const Arguments arguments = attention(op);
  score_arguments_[node_->output] = arguments;
  return [arguments, images = image_rows_, scores = output()](std::int64_t layer) mutable {
    const auto run = [&](const AttentionArguments& args, std::int64_t first) {
      const std::int64_t keys = args.batch * args.keys * args.kv_heads * args.head_dim;
      const std::int64_t queries = args.batch * args.queries * args.heads * args.head_dim;
      return StepCount{attention_scores(args, scores + first),
                       (keys + queries + attention_score_floats(args)) * kFloatBytes};
    };
    return sum_over_images(images, arguments(layer), run);
  };
}

StepBuilder::Run StepBuilder::operator()(const Softmax&) {
  if (chunks_) return chunk_softmax();
  if (blocked_) return blocked_softmax();
  if (transient_) return transient_softmax();
  const Arguments arguments = score_arguments_.at(node_->inputs.front());
  return [arguments, images = image_rows_, sinks = sinks(), copy_input = input_copy(),
          scores = output()](std::int64_t layer) mutable {
    copy_input();
    AttentionArguments all = arguments(layer);
    all.sinks = sinks(layer);
    return sum_over_images(images, all, [&](const AttentionArguments& args, std::int64_t first) {
      attention_softmax(args, scores + first);
      return StepCount{0, 2 * attention_score_floats(args) * kFloatBytes};
    });
  };
  // The analyzer loses track of the captures' ownership. NOLINTNEXTLINE(clang-analyzer-*)
}

StepBuilder::Run StepBuilder::operator()(const AttentionContext& op) {
  if (op.shape.is_chunked()) return chunk_context();
  if (op.shape.has_transient_keys()) return transient_context();
  if (op.shape.is_blocked()) return blocked_context();
  // The probabilities replaced the scores; the other operands have not moved.
  const Arguments arguments = score_arguments_.begin()->second;
  score_arguments_.clear();
  return [arguments, images = image_rows_, probabilities = input(0),
          out = output()](std::int64_t layer) mutable {
    AttentionArguments all = arguments(layer);
    all.out = out;
    return sum_over_images(images, all, [&](const AttentionArguments& args, std::int64_t first) {
      const std::int64_t values = args.batch * args.keys * args.kv_heads * args.value_head_dim;
      const std::int64_t context = args.batch * args.queries * args.heads * args.value_head_dim;
      return StepCount{attention_context(args, probabilities + first),
                       (values + context + attention_score_floats(args)) * kFloatBytes};
    });
  };
}

StepBuilder::Run StepBuilder::operator()(const FusedAttention& op) {
  if (mixes_keys()) return mixed_fused(op);
  if (op.shaping.mask == KeyMask::indexer) return sparse_fused(op);
  const Arguments arguments = attention(op);
  Arguments sizes = arguments;
  const AttentionArguments largest = [&] {
    AttentionArguments args = sizes(0);
    args.keys = std::max(args.keys, integer(op.shape.keys));
    if (op.keys == KeySource::cache) args.keys = std::max(args.keys, cached_keys());
    return args;
  }();
  auto memory = scratch(fused_attention_scratch_floats(largest, omp_get_max_threads()));
  return [arguments, memory, images = image_rows_, sinks = sinks(),
          out = output()](std::int64_t layer) mutable {
    AttentionArguments all = arguments(layer);
    all.out = out;
    all.sinks = sinks(layer);
    return sum_over_images(images, all,
                           [&](const AttentionArguments& args, std::int64_t /*first*/) {
                             return StepCount{fused_attention(args, memory->data()),
                                              attention_operand_floats(args) * kFloatBytes};
                           });
  };
  // The analyzer loses track of the captures' ownership. NOLINTNEXTLINE(clang-analyzer-*)
}

StepBuilder::Run StepBuilder::operator()(const FeatureMap& op) {
  const MappedRows features{output(), integer(op.heads.rows), integer(op.heads.heads),
                            integer(op.heads.head_dim), integer(op.heads.row_width)};
  const std::int64_t elements = features.rows * features.heads * features.head_dim;
  return [=, kind = op.kind, copy_input = input_copy()](std::int64_t /*layer*/) {
    copy_input();
    feature_map(kind, features);
    return StepCount{0, 2 * elements * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const LinearAttention& op) {
  const Arguments arguments = attention(op);
  const float eps =
      static_cast<float>(program_.spec_.main_stack().self_attention.linear_attention_eps);
  Arguments sizes = arguments;
  const AttentionArguments args = sizes(0);
  const std::int64_t floats = linear_attention_state_floats(args);
  const bool uses_cache = op.state == KeySource::cache;
  auto own_state = scratch(uses_cache ? 0 : floats);
  return [=, out = output(), cache = &program_.cache_](std::int64_t layer) mutable {
    AttentionArguments run = arguments(layer);
    run.out = out;
    float* const state = uses_cache ? cache->data("attention.state", layer) : own_state->data();
    if (!uses_cache) std::fill(own_state->begin(), own_state->end(), 0.0F);
    return StepCount{linear_attention(run, eps, state),
                     (attention_operand_floats(run) + 2 * floats) * kFloatBytes};
  };
}

}  // namespace headroom::measured
