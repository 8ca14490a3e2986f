// Steps of DeepSeek-V4's attention: compressed keys, attention to them and a window of tokens, and
// the grouped output projection.
#include <omp.h>

#include <algorithm>

#include "headroom/error.h"
#include "kernels/convolution.h"
#include "kernels/indexer.h"
#include "kernels/key_compression.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Keys of a pass, attention's operands among them, and memory for both.
struct GatheredKeys {
  MixedKeys mixed;
  AttentionArguments args;
  std::shared_ptr<AlignedVector<float>> keys;
  std::shared_ptr<AlignedVector<float>> mask;

  const AttentionArguments& gather() {
    gather_keys(mixed, keys->data());
    mask_keys(mixed, mask->data());
    args.keys = mixed.keys();
    args.k = keys->data();
    args.v = args.k;
    args.choice = mask->data();
    args.k_stride = args.v_stride = mixed.width;
    args.k_batch_stride = args.v_batch_stride = args.keys * mixed.width;
    return args;
  }
};

/// Floats of the operands and the scores of an attention.
std::int64_t eager_floats(const AttentionArguments& args) {
  const std::int64_t rows = args.batch * args.queries * args.heads;
  return rows * (args.head_dim + args.keys) + args.batch * args.keys * args.head_dim;
}

/// Rows of tokens and of compressed keys that a pass sees at most, and the caches that hold them.
struct KeySources {
  std::int64_t most_tokens = 0;
  std::int64_t most_entries = 0;
  std::string token_cache;  ///< empty: the projections of the pass
  std::string entry_cache;  ///< likewise
};

/// The operands that no run changes: queries, contexts and strides.
void set_query_operands(const float* queries, AttentionArguments& args) {
  args.window = {};
  args.q = queries;
  args.q_stride = args.heads * args.head_dim;
  args.q_batch_stride = args.queries * args.q_stride;
  args.out_stride = args.heads * args.value_head_dim;
  args.out_batch_stride = args.queries * args.out_stride;
}

/// Sets the keys of `layer` that a pass after `past` tokens sees.
void set_keys(const KeySources& sources, std::int64_t past, std::int64_t layer, KvCache& cache,
              MixedKeys& keys) {
  const bool entries_cached = !sources.entry_cache.empty();
  keys.past = keys.cached || entries_cached ? past : 0;
  if (keys.cached) keys.tokens = cache.data(sources.token_cache, layer);
  if (entries_cached) keys.entries = cache.data(sources.entry_cache, layer);
  const std::int64_t tokens = keys.past + keys.queries;
  keys.token_keys = keys.cached ? std::min(sources.most_tokens, tokens) : sources.most_tokens;
  keys.entry_keys = std::min(sources.most_entries, tokens / keys.rate);
}

}  // namespace

StepBuilder::Run StepBuilder::operator()(const KeyCompression& op) {
  CompressionArguments args;
  args.batch = integer(op.batch);
  args.tokens = integer(op.tokens);
  args.rate = integer(op.rate);
  args.series = integer(op.series);
  args.width = integer(op.width);
  args.out_entries = integer(op.entries);
  args.rows = input(0);
  const bool cached = node_->inputs.size() > 1;
  const std::string state = cached ? program_.graph_.tensors[node_->inputs[1]].name : "";
  const std::int64_t moved = floats_of(node_->inputs[0]) + floats_of(node_->output);
  return [=, bias = weight_path(0), weights = &program_.weights_, cache = &program_.cache_,
          layers_per_weights = block_.layers_per_weights, lengths = &program_.lengths_,
          out = output()](std::int64_t layer) mutable {
    args.bias = weights->values(bias, layer / layers_per_weights);
    args.past = cached ? lengths->past : 0;
    args.state = cached ? cache->data(state, layer) : nullptr;
    compress_keys(args, out);
    if (cached) keep_open_window(args);
    return StepCount{0, moved * kFloatBytes};
  };
}

bool StepBuilder::mixes_keys() const {
  return spec().main_stack().self_attention.shared_key_value.has_value();
}

MixedKeys StepBuilder::mixed_keys(const AttentionArguments& args,
                                  const ScoreShaping& shaping) const {
  const bool chosen = shaping.mask == KeyMask::indexer;
  const bool compressed = node_->inputs.size() > (chosen ? 3U : 2U);
  const LayerTraits& traits = program_.graph_.traits;
  MixedKeys keys;
  keys.batch = args.batch;
  keys.queries = args.queries;
  keys.width = args.head_dim;
  keys.window = shaping.window.size;
  keys.cached = is_cached(program_.graph_.tensors[node_->inputs[1]].type);
  if (!keys.cached) keys.tokens = input(1);
  if (compressed) keys.entries = input(2);  // null for those of a cache
  if (compressed) keys.rate = chosen ? traits.indexed_rate : traits.heavy_compression_rate;
  if (chosen) keys.choice = program_.pointer(node_->inputs.back());
  if (keys.cached && args.queries > 1) {
    throw Error(ErrorCode::invalid_input, "layers with a window decode one token per step",
                program_.spec_.name, "use a sequence length of 1, or the prefill phase");
  }
  return keys;
}

StepBuilder::MixedOperands StepBuilder::mixed_operands(const AttentionShape& shape,
                                                       const ScoreShaping& shaping) {
  auto held = std::make_shared<GatheredKeys>();
  AttentionArguments& args = held->args;
  args = attention_sizes(shape);
  apply_score_shaping(args, shaping);
  set_query_operands(input(0), args);
  MixedKeys& keys = held->mixed;
  keys = mixed_keys(args, shaping);
  const Tensor& tokens = program_.graph_.tensors[node_->inputs[1]];
  KeySources sources;
  sources.most_tokens = integer(tokens.shape[1]);
  if (keys.cached) sources.token_cache = tokens.name;
  if (keys.rate > 1) {
    const Tensor& entries = program_.graph_.tensors[node_->inputs[2]];
    sources.most_entries = integer(entries.shape[1]);
    if (is_cached(entries.type)) sources.entry_cache = entries.name;
  }
  keys.token_stride = sources.most_tokens * keys.width;
  keys.entry_stride = sources.most_entries * keys.width;
  const std::int64_t most = sources.most_tokens + sources.most_entries;
  held->keys = scratch(args.batch * most * keys.width);
  held->mask = scratch(args.batch * args.queries * most);
  MixedOperands operands;
  operands.largest = args;
  operands.largest.keys = most;
  operands.gathered = [held, sources, cache = &program_.cache_,
                       lengths = &program_.lengths_](std::int64_t layer) {
    set_keys(sources, lengths->past, layer, *cache, held->mixed);
    return held->gather();
  };
  operands.again = [held](std::int64_t /*layer*/) { return held->args; };
  return operands;
}

StepBuilder::Run StepBuilder::mixed_scores(const AttentionScores& op) {
  const MixedOperands operands = mixed_operands(op.shape, op.shaping);
  score_arguments_[node_->output] = operands.again;
  return [gathered = operands.gathered, scores = output()](std::int64_t layer) {
    const AttentionArguments args = gathered(layer);
    return StepCount{attention_scores(args, scores), eager_floats(args) * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::mixed_fused(const FusedAttention& op) {
  const MixedOperands operands = mixed_operands(op.shape, op.shaping);
  auto memory = scratch(sparse_attention_scratch_floats(operands.largest, omp_get_max_threads()));
  return
      [gathered = operands.gathered, memory, sinks = sinks(), out = output()](std::int64_t layer) {
        AttentionArguments args = gathered(layer);
        args.out = out;
        args.sinks = sinks(layer);
        const std::int64_t flops = sparse_attention(args, memory->data());
        const std::int64_t rows = args.batch * args.queries * args.heads;
        return StepCount{flops, (2 * rows * args.head_dim + flops / 2) * kFloatBytes};
      };
}

StepBuilder::Run StepBuilder::operator()(const GroupedLinear& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t groups = integer(op.groups);
  const std::int64_t in = integer(op.in_features);
  const std::int64_t out = integer(op.out_features);
  auto by_group = tap_linears(groups);
  for (auto& layers : by_group) {
    for (const auto& [layer, linear] : layers) linear->prepare(rows);
  }
  auto gathered = scratch(rows * (in + out));
  return [=, by_group = std::move(by_group), x = input(0), y = output()](std::int64_t layer) {
    float* const inputs = gathered->data();
    float* const outputs = inputs + rows * in;
    StepCount count{0, rows * groups * (in + out) * kFloatBytes};
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(x + (row * groups + group) * in, in, inputs + row * in);
      }
      PackedLinear& linear = *by_group[static_cast<std::size_t>(group)].at(layer);
      count.matrix_flops += linear.run(inputs, outputs, rows);
      count.bytes += linear.weight_bytes(rows);
      scatter_group(rows, out, groups * out, group, outputs, y);
    }
    return count;
  };
}

}  // namespace headroom::measured
