// Steps of attention to transient global tokens, as LongT5's encoder runs it.
#include "kernels/transient_global.h"
#include "step_builder.h"

namespace headroom::measured {

TransientGlobalBlocks StepBuilder::transient_blocks() const {
  const TokenInputs& tokens = this->tokens();
  return transient_global_blocks(key_mask(KeySource::projections), tokens.batch, tokens.seq_len,
                                 program_.spec_.encoder->self_attention.global_block_size);
}

StepBuilder::Run StepBuilder::transient_sums(const GlobalRows& op) {
  const std::int64_t width = integer(op.width);
  const std::int64_t moved = integer(op.added()) + integer(op.elements());
  return [=, blocks = transient_blocks(), from = input(0), to = output()](std::int64_t /*layer*/) {
    sum_transient_blocks(blocks, width, from, to);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::transient_bias(const RelativeBiasArguments& sizes,
                                             const RelativePositionBias& op) {
  TransientGlobalBias args;
  args.tokens = sizes;
  args.block = integer(op.block);
  args.key_mask = key_mask(KeySource::projections);
  return [=, blocks = transient_blocks(), table = weight_path(0), global_table = weight_path(1),
          weights = &program_.weights_, floats = floats_of(node_->output),
          out = output()](std::int64_t layer) mutable {
    args.tokens.table = weights->values(table, layer);
    args.global_table = weights->values(global_table, layer);
    fill_transient_global_bias(args, blocks, out);
    return StepCount{0, floats * kFloatBytes};
  };
}

TransientGlobalArguments StepBuilder::transient_arguments(const AttentionScores& op) {
  TransientGlobalArguments args;
  args.block = attention_sizes(op.shape);
  args.batch = args.block.batch;
  args.block.batch = 1;
  args.block.queries = integer(op.shape.block);
  apply_score_shaping(args.block, op.shaping);
  args.block.bias_batch_stride = 0;
  args.block.window = {};  // the bias masks keys
  args.bias = args.block.bias;
  args.tokens = integer(program_.graph_.tensors[node_->inputs.front()].shape.at(1));
  args.queries = input(0);
  args.key_values = input(1);
  args.global_key_values = input(2);
  return args;
}

StepBuilder::Run StepBuilder::transient_scores(const AttentionScores& op) {
  const TransientGlobalArguments args = transient_arguments(op);
  transient_ = TransientOperands{args, scratch(args.scratch_floats())};
  const std::int64_t gathered = args.batch * args.blocks() * args.scratch_floats();
  const std::int64_t moved = 2 * gathered + floats_of(node_->output);
  return [=, rows = transient_->rows, scores = output()](std::int64_t /*layer*/) {
    return StepCount{transient_global_scores(args, rows->data(), scores), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::transient_softmax() {
  const std::int64_t moved = 2 * floats_of(node_->output);
  return [=, args = transient_->args, copy_input = input_copy(),
          scores = output()](std::int64_t /*layer*/) {
    copy_input();
    transient_global_softmax(args, scores);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::transient_context() {
  const TransientOperands operands = *transient_;
  transient_.reset();
  const TransientGlobalArguments& args = operands.args;
  const std::int64_t gathered =
      args.batch * args.blocks() * args.block.keys * args.key_value_width();
  const std::int64_t moved =
      2 * gathered + floats_of(node_->inputs.front()) + floats_of(node_->output);
  return [=, context = scratch(args.context_floats()), probabilities = input(0),
          out = output()](std::int64_t /*layer*/) {
    const std::int64_t flops = transient_global_context(
        operands.args, probabilities, operands.rows->data(), context->data(), out);
    return StepCount{flops, moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
