// Steps of attention in blocks of queries, as LongT5's encoder runs it.
#include "step_builder.h"

namespace headroom::measured {

BlockedAttentionArguments StepBuilder::blocked_arguments(const AttentionScores& op) {
  BlockedAttentionArguments args;
  args.block = attention_sizes(op.shape);
  args.batch = args.block.batch;
  args.block.batch = 1;
  args.block.queries = integer(op.shape.block);
  args.block.past = args.block.queries;
  apply_score_shaping(args.block, op.shaping);
  const std::vector<Expr>& rows = program_.graph_.tensors[node_->inputs.front()].shape;
  args.tokens = integer(rows.at(1));
  args.row_width = integer(rows.back());
  args.rows = input(0);
  args.key_mask = key_mask(KeySource::projections);
  return args;
}

StepBuilder::Run StepBuilder::blocked_scores(const AttentionScores& op) {
  const BlockedAttentionArguments args = blocked_arguments(op);
  blocked_ = BlockedOperands{args, scratch(args.padded_floats())};
  const std::int64_t moved = 2 * args.padded_floats() + floats_of(node_->output);
  return [=, padded = blocked_->padded, scores = output()](std::int64_t /*layer*/) {
    pad_rows(args, padded->data());
    return StepCount{measured::blocked_scores(args, padded->data(), scores), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::blocked_softmax() {
  const BlockedAttentionArguments args = blocked_->args;
  const std::int64_t moved = 2 * floats_of(node_->output);
  return [=, key_mask = padded_key_mask(args), copy_input = input_copy(),
          scores = output()](std::int64_t /*layer*/) {
    copy_input();
    measured::blocked_softmax(args, key_mask, scores);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::blocked_context() {
  const BlockedOperands operands = *blocked_;
  blocked_.reset();
  const std::int64_t moved =
      floats_of(node_->inputs.front()) + operands.args.padded_floats() + floats_of(node_->output);
  return [=, context = scratch(operands.args.context_floats()), probabilities = input(0),
          out = output()](std::int64_t /*layer*/) {
    const std::int64_t flops = measured::blocked_context(operands.args, operands.padded->data(),
                                                         probabilities, context->data(), out);
    return StepCount{flops, moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
