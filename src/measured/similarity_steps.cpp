// Steps of models that compare texts with images.
#include <algorithm>
#include <cmath>

#include "kernels/normalize.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const RepeatedRow& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  const std::int64_t stored = integer(program_.graph_.weights[node_->weights[0]].elements());
  return [=, path = weight_path(0), weights = &program_.weights_,
          layers = block_.layers_per_weights, out = output()](std::int64_t layer) {
    const float* const row = weights->values(path, layer / layers);
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(row, width, out + i * width);
    return StepCount{0, (rows * width + stored) * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const UnitLength& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  return [=, copy_input = input_copy(), x = output()](std::int64_t /*layer*/) {
    copy_input();
    unit_length(rows, width, x);
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

/// Scores of one head whose queries are texts, and whose keys are images.
StepBuilder::Run StepBuilder::operator()(const SimilarityLogits& op) {
  AttentionArguments args;
  args.batch = 1;
  args.heads = 1;
  args.kv_heads = 1;
  args.queries = integer(op.texts);
  args.keys = integer(op.images);
  args.head_dim = integer(op.width);
  args.q = input(0);
  args.k = input(1);
  args.q_stride = args.head_dim;
  args.k_stride = args.head_dim;
  const float scale = std::exp(*program_.weights_.values(weight_path(0), 0));
  const float bias = op.bias ? *program_.weights_.values(weight_path(1), 0) : 0.0F;
  const std::int64_t logits = args.queries * args.keys;
  const std::int64_t moved = (args.queries + args.keys) * args.head_dim + logits;
  return [=, out = output()](std::int64_t /*layer*/) {
    const std::int64_t flops = attention_scores(args, out);
    for (std::int64_t i = 0; i < logits; ++i) out[i] = out[i] * scale + bias;
    return StepCount{flops, moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
