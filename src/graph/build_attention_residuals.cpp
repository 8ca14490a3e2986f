// Attention residuals (arXiv 2603.15031; moonshotai/Kimi-K3, modeling_kimi_linear.py): a stack is
// cut into blocks of layers. Each sublayer reads a sum of the hidden states in front of the blocks
// so far and of the block's own sum of outputs, weighted by a softmax of one score each.
#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::attend_residuals(const StackContext& stack, const std::string& path,
                                        TensorId hidden) {
  if (block_states_.empty()) return hidden;  // the first attention reads the embeddings alone
  const Expr width = Symbol::hidden_size;
  std::vector<WeightId> weights{
      weight(Part::residual, path + ".norm.weight", {width}, WeightRole::norm),
      weight(Part::residual, path + ".projection.weight", {Integer{1}, width},
             WeightRole::attention)};
  std::vector<TensorId> streams = block_states_;
  streams.push_back(hidden);
  StreamStep op;
  op.kind = StreamStep::Kind::attend;
  op.rows = stack.rows();
  op.streams = Integer{static_cast<std::int64_t>(streams.size())};
  op.width = width;
  op.eps = stack.spec->norm.eps;
  return emit(Part::residual, path, op, std::move(streams), std::move(weights),
              hidden_shape(stack));
}

TensorId GraphBuilder::attention_residual_layer(const StackContext& stack, TensorId hidden) {
  const StackSpec& spec = *stack.spec;
  const bool begins = stack.residual_place == ResidualPlace::first_of_block;
  TensorId branch = attend_residuals(stack, "attention_residual", hidden);
  branch = self_attention(stack, norm(spec.norm, "attention_norm", stack.rows(), branch));
  branch = dropout("attention.dropout", spec.dropout.attention_output, branch);
  if (begins) block_states_.push_back(hidden);
  hidden = begins ? branch : add_residual(stack, "attention.residual", hidden, branch);
  branch = attend_residuals(stack, "mlp_residual", hidden);
  branch = feed_forward(stack, norm(spec.norm, "mlp_norm", stack.rows(), branch));
  branch = dropout("mlp.dropout", spec.dropout.ffn_output, branch);
  return add_residual(stack, "mlp.residual", hidden, branch);
}

TensorId GraphBuilder::output_residual(const StackContext& stack, TensorId hidden) {
  begin_block(stack.path, stack.role, Integer{1}, hidden);
  return end_block(attend_residuals(stack, "output_residual", hidden));
}

}  // namespace headroom::detail
