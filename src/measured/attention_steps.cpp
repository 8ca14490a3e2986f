// Steps of attention: eager, fused and linear, with and without a KV-cache.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "headroom/error.h"
#include "kernels/alibi.h"
#include "kernels/linear_attention.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Widths of query, key and value side by side in one row.
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

/// A sequence's keys, then its values, each head's together: that way a step reads every head's
/// from one end to the other.
struct CacheLayout {
  std::int64_t capacity = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_head_dim = 0;

  /// Puts a token's row of keys and values into a slot of `sequence`.
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

std::int64_t operand_floats(const AttentionArguments& args) {
  const std::int64_t queries = args.batch * args.queries * args.heads;
  const std::int64_t keys = args.batch * args.keys * args.kv_heads;
  return queries * (args.head_dim + args.value_head_dim) +
         keys * (args.head_dim + args.value_head_dim);
}

std::int64_t score_floats(const AttentionArguments& args) {
  return args.batch * args.heads * args.queries * args.keys;
}

}  // namespace

std::int64_t StepBuilder::cached_keys() const {
  return integer(program_.graph_.tensors[node_->inputs[1]].shape[1]);
}

bool StepBuilder::is_cross_attention() const { return node_->path.starts_with("cross_attention"); }

const std::uint8_t* StepBuilder::key_mask(KeySource keys) const {
  const ModelInputs& inputs = program_.inputs_;
  if (is_cross_attention()) {
    return inputs.encoder->key_mask.empty() ? nullptr : inputs.encoder->key_mask.data();
  }
  const TokenInputs& tokens = this->tokens();
  const bool masked = keys == KeySource::projections && !tokens.key_mask.empty();
  return masked ? tokens.key_mask.data() : nullptr;
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

void StepBuilder::place_operands(AttentionArguments& args, KeySource keys,
                                 ValuePlace values) const {
  const RowLayout layout = layout_of(args);
  const bool together = keys == KeySource::projections && !is_cross_attention();
  const bool within = values == ValuePlace::inside_keys;
  args.q = input(0);
  args.q_stride = together ? layout.row() : layout.query;
  // Queries beside a cache stand in the row of all projections, unless they came alone.
  if (!together) args.q_stride = integer(program_.graph_.tensors[node_->inputs[0]].shape.back());
  args.q_batch_stride = args.queries * args.q_stride;
  args.out_stride = args.heads * args.value_head_dim;
  args.out_batch_stride = args.queries * args.out_stride;
  args.k_stride = together ? layout.row() : layout.key + (within ? 0 : layout.value);
  args.v_stride = args.k_stride;
  args.k_batch_stride = args.keys * args.k_stride;
  args.k_head_stride = args.head_dim;
  args.v_head_stride = args.value_head_dim;
  if (keys == KeySource::cache) {
    // All keys of a sequence stand before all its values, each head's together.
    const std::int64_t rows = cached_keys();
    args.k_batch_stride = rows * args.k_stride;
    args.k_stride = args.head_dim;
    args.v_stride = within ? args.head_dim : args.value_head_dim;
    args.k_head_stride = rows * args.k_stride;
    args.v_head_stride = rows * args.v_stride;
  }
  args.v_batch_stride = args.k_batch_stride;
}

void StepBuilder::shape_scores(AttentionArguments& args, const ScoreShaping& shaping) {
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
    args.bias = program_.pointer(node_->inputs.back());
  }
  if (shaping.bias == ScoreBias::alibi) {
    slopes_ = std::make_shared<const std::vector<float>>(alibi_slopes(shaping.alibi, args.heads));
    args.slopes = slopes_->data();
    args.alibi_order = shaping.alibi.order;
  }
}

template <class Op>
StepBuilder::Arguments StepBuilder::attention(const Op& op) {
  AttentionArguments args = attention_sizes(op.shape);
  args.causal = op.masking == Masking::causal;
  if constexpr (requires { op.shaping; }) shape_scores(args, op.shaping);
  KeySource keys = KeySource::projections;
  ValuePlace values = ValuePlace::after_keys;
  if constexpr (requires { op.keys; }) {
    keys = op.keys;
    values = op.values;
  }
  args.key_mask = key_mask(keys);
  place_operands(args, keys, values);
  const bool cross = is_cross_attention();
  const bool from_cache = keys == KeySource::cache;
  const bool windowed = from_cache && args.window.kind != WindowKind::none;
  const std::int64_t cached = from_cache ? cached_keys() : args.keys;
  const std::int64_t chunk =
      windowed && args.window.kind == WindowKind::chunked ? args.window.size : 0;
  if (windowed) {
    if (args.queries > 1) {
      throw Error(ErrorCode::invalid_input, "layers with a window decode one token at a time",
                  program_.spec_.name, "use --seq 1, or --phase prefill");
    }
    // The cache holds the window and nothing else, in any order; a chunk that has just begun
    // stands before what is left of the one before it.
    args.causal = chunk > 0;
    args.window = {};
  }
  const RowLayout layout = layout_of(args);
  std::int64_t value_offset = from_cache ? cached * layout.key : layout.key;
  if (values == ValuePlace::inside_keys) value_offset = 0;
  const std::string cache = cross ? "cross_attention.kv_cache" : "attention.kv_cache";
  const float* own_keys = cross ? nullptr : args.q + layout.query;
  if (cross && !from_cache) own_keys = input(1);
  return [=, program = &program_, kept_slopes = slopes_](std::int64_t layer) mutable {
    args.k = from_cache ? program->cache_.data(cache, layer) : own_keys;
    args.v = args.k + value_offset;
    if (from_cache && !cross) {
      args.past = windowed ? 0 : program->lengths_.past;
      if (chunk > 0) args.past = program->lengths_.past % chunk;
      args.keys = std::min(cached, program->lengths_.past + args.queries);
    }
    return args;
  };
}

StepBuilder::Run StepBuilder::operator()(const Rotary& op) {
  RotaryArguments args;
  args.seq_len = integer(op.seq_len);
  args.batch = integer(op.heads.rows) / args.seq_len;
  args.heads = integer(op.heads.heads);
  args.head_stride = integer(op.heads.head_dim);
  args.stride = integer(op.heads.row_width);
  args.batch_stride = args.seq_len * args.stride;
  const std::int64_t width = integer(op.rotary_dim);
  const bool in_encoder = node_->component.stack == StackRole::encoder;
  const std::int64_t positions = in_encoder ? args.seq_len : program_.lengths_.capacity;
  auto table = std::make_shared<const RotaryTable>(make_rotary_table(
      op.rope, width, positions, program_.spec_.position.max_position_embeddings));
  const std::int64_t first = integer(op.heads.first) + integer(op.first_dim);
  const std::int64_t moved = 2 * args.batch * args.seq_len * args.heads * width;
  return [=, bring = bring_input(), lengths = &program_.lengths_,
          x = output()](std::int64_t /*layer*/) mutable {
    bring();
    args.first_position = in_encoder ? 0 : lengths->past;
    apply_rotary(*table, args, x + first);
    return StepCount{0, moved * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const KvCacheAppend& op) {
  const bool cross = is_cross_attention();
  const Lengths* const lengths = &program_.lengths_;
  const std::int64_t batch = lengths->batch;
  const std::int64_t tokens = integer(op.kept.rows) / batch;
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
  return [=, cache = &program_.cache_, bring = bring_input()](std::int64_t layer) {
    bring();
    float* const to = cache->data(name, layer);
    const std::int64_t past = cross ? 0 : lengths->past;
    // What would be overwritten by a later one of these tokens is not written at all.
    const std::int64_t first = std::max<std::int64_t>(0, tokens - layout.capacity);
    for (std::int64_t b = 0; b < batch; ++b) {
      float* const sequence = to + b * layout.capacity * kept;
      for (std::int64_t s = first; s < tokens; ++s) {
        layout.store(from + (b * tokens + s) * row, (past + s) % layout.capacity, sequence);
      }
    }
    return StepCount{0, 2 * batch * (tokens - first) * kept * kFloat};
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
  const Arguments arguments = attention(op);
  score_arguments_[node_->output] = arguments;
  return [arguments, scores = output()](std::int64_t layer) mutable {
    const AttentionArguments args = arguments(layer);
    const std::int64_t keys = args.batch * args.keys * args.kv_heads * args.head_dim;
    const std::int64_t queries = args.batch * args.queries * args.heads * args.head_dim;
    return StepCount{attention_scores(args, scores),
                     (keys + queries + score_floats(args)) * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const Softmax&) {
  const Arguments arguments = score_arguments_.at(node_->inputs.front());
  return [arguments, sinks = sinks(), bring = bring_input(),
          scores = output()](std::int64_t layer) mutable {
    bring();
    AttentionArguments args = arguments(layer);
    args.sinks = sinks(layer);
    attention_softmax(args, scores);
    return StepCount{0, 2 * score_floats(args) * kFloat};
  };
  // The analyzer loses the ownership of what the lambda captures. NOLINTNEXTLINE(clang-analyzer-*)
}

StepBuilder::Run StepBuilder::operator()(const AttentionContext& op) {
  // The probabilities are in the place of the scores, whose operands lie where they did.
  const Arguments arguments = score_arguments_.begin()->second;
  score_arguments_.clear();
  const AttentionShape shape = op.shape;
  return [arguments, probabilities = input(0), out = output()](std::int64_t layer) mutable {
    AttentionArguments args = arguments(layer);
    args.out = out;
    const std::int64_t values = args.batch * args.keys * args.kv_heads * args.value_head_dim;
    const std::int64_t context = args.batch * args.queries * args.heads * args.value_head_dim;
    return StepCount{attention_context(args, probabilities),
                     (values + context + score_floats(args)) * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const FusedAttention& op) {
  const Arguments arguments = attention(op);
  Arguments sizes = arguments;
  const AttentionArguments largest = [&] {
    AttentionArguments args = sizes(0);
    args.keys = integer(op.shape.keys);
    return args;
  }();
  const std::int64_t scratch = fused_attention_scratch_floats(largest, omp_get_max_threads());
  auto memory = std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(scratch));
  return [arguments, memory, sinks = sinks(), out = output()](std::int64_t layer) mutable {
    AttentionArguments args = arguments(layer);
    args.out = out;
    args.sinks = sinks(layer);
    return StepCount{fused_attention(args, memory->data()), operand_floats(args) * kFloat};
  };
  // The analyzer loses the ownership of what the lambda captures. NOLINTNEXTLINE(clang-analyzer-*)
}

StepBuilder::Run StepBuilder::operator()(const FeatureMap& op) {
  const std::int64_t rows = integer(op.heads.rows);
  const std::int64_t width = integer(op.heads.heads * op.heads.head_dim);
  const std::int64_t row = integer(op.heads.row_width);
  return [=, bring = bring_input(), x = output()](std::int64_t /*layer*/) {
    bring();
    feature_map(x, rows, width, row);
    return StepCount{0, 2 * rows * width * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const LinearAttention& op) {
  const Arguments arguments = attention(op);
  const float eps =
      static_cast<float>(program_.spec_.main_stack().self_attention.linear_attention_eps);
  Arguments sizes = arguments;
  const AttentionArguments args = sizes(0);
  const std::int64_t floats = linear_attention_state_floats(args);
  const bool goes_on = op.state == KeySource::cache;
  auto own = std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(goes_on ? 0 : floats));
  return [=, out = output(), cache = &program_.cache_](std::int64_t layer) mutable {
    AttentionArguments run = arguments(layer);
    run.out = out;
    float* const state = goes_on ? cache->data("attention.state", layer) : own->data();
    if (!goes_on) std::fill(own->begin(), own->end(), 0.0F);
    return StepCount{linear_attention(run, eps, state),
                     (operand_floats(run) + 2 * floats) * kFloat};
  };
}

}  // namespace headroom::measured
