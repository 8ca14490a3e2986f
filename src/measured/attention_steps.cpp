// Steps of attention: eager, fused and linear, with and without a KV-cache.
#include <omp.h>

#include <cmath>
#include <cstring>

#include "kernels/linear_attention.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

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

StepBuilder::Arguments StepBuilder::attention(const AttentionShape& shape, KeySource keys,
                                              Masking masking, ScoreBias bias,
                                              AttentionScale scale) {
  AttentionArguments args;
  args.batch = integer(shape.batch);
  args.heads = integer(shape.heads);
  args.kv_heads = integer(shape.kv_heads);
  args.head_dim = integer(shape.head_dim);
  args.value_head_dim = integer(shape.value_head_dim);
  args.queries = integer(shape.queries);
  args.keys = integer(shape.keys);
  args.causal = masking == Masking::causal;
  if (scale == AttentionScale::inverse_sqrt_head_dim) {
    args.scale = 1.0F / std::sqrt(static_cast<float>(args.head_dim));
  }
  args.key_mask = key_mask(keys);
  if (bias == ScoreBias::relative_position) args.bias = program_.pointer(node_->inputs.back());
  const RowLayout layout = layout_of(args);
  const bool cross = is_cross_attention();
  args.q = input(0);
  args.q_stride = cross ? layout.query : layout.row();
  args.q_batch_stride = args.queries * args.q_stride;
  args.out_stride = args.heads * args.value_head_dim;
  args.out_batch_stride = args.queries * args.out_stride;

  const std::int64_t key_row = layout.key + layout.value;
  const bool from_cache = keys == KeySource::cache;
  args.k_stride = cross || from_cache ? key_row : layout.row();
  const std::int64_t rows = from_cache && !cross ? program_.lengths_.capacity : args.keys;
  args.k_batch_stride = rows * args.k_stride;
  args.k_head_stride = args.head_dim;
  args.v_head_stride = args.value_head_dim;
  args.v_stride = args.k_stride;
  args.v_batch_stride = args.k_batch_stride;
  const std::string cache = cross ? "cross_attention.kv_cache" : "attention.kv_cache";
  const float* own_keys = cross ? nullptr : args.q + layout.query;
  if (cross && !from_cache) own_keys = input(1);
  return [=, program = &program_](std::int64_t layer) mutable {
    args.k = from_cache ? program->cache_.data(cache, layer) : own_keys;
    args.v = args.k + layout.key;
    if (from_cache && !cross) {
      args.past = program->lengths_.past;
      args.keys = args.past + args.queries;
    }
    return args;
  };
}

StepBuilder::Run StepBuilder::operator()(const Rotary&) {
  const AttentionSpec& attention = program_.spec_.main_stack().self_attention;
  const TokenInputs& tokens = program_.inputs_.main;
  const std::int64_t row =
      attention.num_attention_heads * attention.head_dim +
      attention.num_key_value_heads * (attention.head_dim + attention.value_head_dim);
  const std::int64_t heads = attention.num_attention_heads + attention.num_key_value_heads;
  RotaryArguments args{tokens.batch, tokens.seq_len, heads, row, tokens.seq_len * row, 0};
  auto table = std::make_shared<RotaryTable>(make_rotary_table(
      program_.spec_.position.rope, attention.head_dim, program_.lengths_.capacity,
      program_.spec_.position.max_position_embeddings));
  const std::int64_t moved = 2 * tokens.batch * tokens.seq_len * heads * attention.head_dim;
  return [=, bring = bring_input(), lengths = &program_.lengths_,
          x = output()](std::int64_t /*layer*/) mutable {
    bring();
    args.first_position = lengths->past;
    apply_rotary(*table, args, x);
    return StepCount{0, moved * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const KvCacheAppend& op) {
  const bool cross = is_cross_attention();
  const AttentionSpec& attention = program_.spec_.main_stack().self_attention;
  const std::int64_t query = attention.num_attention_heads * attention.head_dim;
  const std::int64_t kept =
      attention.num_key_value_heads * (attention.head_dim + attention.value_head_dim);
  const Lengths* const lengths = &program_.lengths_;
  const std::int64_t tokens = cross ? lengths->enc_seq_len : lengths->seq_len;
  const std::int64_t capacity = cross ? lengths->enc_seq_len : lengths->capacity;
  const std::int64_t row = cross ? kept : query + kept;
  const float* const from = input(0) + (row - kept);
  const std::string name = program_.graph_.tensors[node_->inputs.at(1)].name;
  return [=, cache = &program_.cache_, moved = 2 * integer(op.elements)](std::int64_t layer) {
    float* const to = cache->data(name, layer);
    const std::int64_t first = cross ? 0 : lengths->past;
    for (std::int64_t b = 0; b < lengths->batch; ++b) {
      for (std::int64_t s = 0; s < tokens; ++s) {
        std::memcpy(to + (b * capacity + first + s) * kept, from + (b * tokens + s) * row,
                    static_cast<std::size_t>(kept * kFloat));
      }
    }
    return StepCount{0, moved * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const AttentionScores& op) {
  const Arguments arguments = attention(op.shape, op.keys, op.masking, op.bias, op.scale);
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
  return [arguments, bring = bring_input(), scores = output()](std::int64_t layer) mutable {
    bring();
    const AttentionArguments args = arguments(layer);
    attention_softmax(args, scores);
    return StepCount{0, 2 * score_floats(args) * kFloat};
  };
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
  const Arguments arguments = attention(op.shape, op.keys, op.masking, op.bias, op.scale);
  Arguments sizes = arguments;
  const AttentionArguments largest = [&] {
    AttentionArguments args = sizes(0);
    args.keys = integer(op.shape.keys);
    return args;
  }();
  const std::int64_t scratch = fused_attention_scratch_floats(largest, omp_get_max_threads());
  auto memory = std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(scratch));
  return [arguments, memory, out = output()](std::int64_t layer) mutable {
    AttentionArguments args = arguments(layer);
    args.out = out;
    return StepCount{fused_attention(args, memory->data()), operand_floats(args) * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const FeatureMap& op) {
  const AttentionSpec& attention = program_.spec_.main_stack().self_attention;
  const TokenInputs& tokens = program_.inputs_.main;
  const std::int64_t width =
      (attention.num_attention_heads + attention.num_key_value_heads) * attention.head_dim;
  const std::int64_t row = width + attention.num_key_value_heads * attention.value_head_dim;
  const std::int64_t rows = tokens.batch * tokens.seq_len;
  return [=, bring = bring_input(), x = output(),
          moved = 2 * integer(op.elements)](std::int64_t /*layer*/) {
    bring();
    feature_map(x, rows, width, row);
    return StepCount{0, moved * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const LinearAttention& op) {
  const Arguments arguments = attention(op.shape, KeySource::projections, op.masking,
                                        ScoreBias::none, AttentionScale::none);
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
