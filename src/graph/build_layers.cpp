// A stack: layers of attention and feed-forward network with their norms.
#include <fmt/format.h>

#include <algorithm>

#include "builder.h"
#include "headroom/tiled_tower.h"
#include "tiled_steps.h"

namespace headroom::detail {
namespace {

/// The stack's layers that position `position` of `run` covers, as a slice: [3:61], [0:24:6]. Empty
/// if all layers of the stack are equal.
std::string slice(const StackSpec& stack, const LayerRun& run, std::int64_t position) {
  const auto period = static_cast<std::int64_t>(run.variants.size());
  if (run.layers() == stack.num_layers && period == 1) return {};
  const std::int64_t end = run.first_layer + run.layers();
  if (period == 1) return fmt::format("[{}:{}]", run.first_layer, end);
  return fmt::format("[{}:{}:{}]", run.first_layer + position, end, period);
}

/// Repeat count of a run: l, l less the layers outside the run, or a number.
Expr repeat_of(const StackContext& stack, const LayerRun& run) {
  const std::int64_t others = stack.spec->num_layers - run.layers();
  const bool covers_most_layers = run.variants.size() == 1 && run.layers() > others;
  if (!covers_most_layers) return Integer{run.repeat};
  return others == 0 ? stack.num_layers : stack.num_layers - Integer{others};
}

bool has_position_bias(const StackContext& stack, RelativeBiasSharing sharing) {
  const PositionKind kind = stack.position->kind;
  const bool biased =
      kind == PositionKind::relative_bias || kind == PositionKind::learned_and_relative_bias;
  return biased && stack.position->bias_sharing == sharing;
}

/// Number of the use of a shared block in a layer; the number of all uses if there is none.
std::size_t use_of(const SharedBlockSpec& shared, std::int64_t layer) {
  return static_cast<std::size_t>(std::ranges::find(shared.layers, layer) - shared.layers.begin());
}

bool uses_shared_block(const SharedBlockSpec& shared, std::int64_t layer) {
  return use_of(shared, layer) < shared.layers.size();
}

}  // namespace

TensorId GraphBuilder::run_stack(const StackContext& stack, TensorId hidden) {
  if (has_position_bias(stack, RelativeBiasSharing::stack)) {
    begin_block(stack.path, stack.role, Integer{1}, 0);
    relative_position_bias(stack);
    end_block(*position_bias_);
    position_table_ = position_bias_;
  }
  if (stack.spec->self_attention.disentangled) relative_embeddings(stack);
  if (stack.spec->self_attention.transformer_xl) relative_sinusoids(stack);
  if (stack.spec->conformer) conformer_positions(stack);
  if (stack.spec->hyper_connections) hidden = expand_streams(stack, hidden);
  const TensorId input = hidden;
  std::vector<std::int64_t> deepstack_layers;
  for (std::size_t i = 0; i < deepstack_.size() && reads_images(); ++i) {
    deepstack_layers.push_back(static_cast<std::int64_t>(i) + 1);
  }
  const auto& shared = stack.spec->shared_block;
  for (const LayerRun& run : cut_after(layer_runs(*stack.spec), deepstack_layers)) {
    if (shared && uses_shared_block(*shared, run.first_layer)) {
      shared_block(stack, use_of(*shared, run.first_layer), input, hidden);
    }
    hidden = run_layers(stack, run, hidden);
    hidden = add_deepstack(stack, run.first_layer + run.layers(), hidden);
    const bool convolves = stack.spec->input_convolution && run.first_layer == 0;
    if (convolves) hidden = input_convolution(stack, input, hidden);
  }
  if (stack.spec->altup) hidden = altup_output(stack, hidden);
  if (stack.spec->residual_block > 0) hidden = output_residual(stack, hidden);
  return final_norm(stack, hidden);
}

TensorId GraphBuilder::run_layers(StackContext stack, const LayerRun& run, TensorId hidden) {
  begin_block(stack.path + ".layers", stack.role, repeat_of(stack, run), hidden);
  Block& block = graph_.blocks.back();
  block.layers_per_run = static_cast<std::int64_t>(run.variants.size());
  block.first_layer = run.first_layer;
  if (const auto groups = stack.spec->num_weight_groups) {
    block.layers_per_weights = stack.spec->num_layers / *groups;
    weight_groups_ = *groups;
  }
  for (layer_ = 0; layer_ < static_cast<std::int64_t>(run.variants.size()); ++layer_) {
    const std::size_t variant = run.variants[static_cast<std::size_t>(layer_)];
    stack.attention = &stack.spec->attention_of(variant);
    stack.ffn = &stack.spec->ffn_of(variant);
    const auto& convolution = stack.spec->convolution_of(variant);
    stack.convolution = convolution ? &*convolution : nullptr;
    stack.heads = head_sizes(*stack.attention);
    const std::int64_t block_layers = stack.spec->residual_block;
    const bool begins = block_layers > 0 && (run.first_layer + layer_) % block_layers == 0;
    stack.residual_place = begins ? ResidualPlace::first_of_block : ResidualPlace::within_block;
    layer_slice_ = slice(*stack.spec, run, layer_);
    if (const std::int64_t inner = stack.spec->layers_of_group; inner > 1) {
      scope_ = fmt::format("inner.{}.", (run.first_layer + layer_) % inner);
    }
    hidden = layer(stack, connect_blocks(stack, run.first_layer + layer_, hidden));
  }
  if (stack.spec->layers_of_group > 1) scope_.clear();
  layer_ = 0;
  layer_slice_.clear();
  return end_block(hidden);
}

template <class Function>
TensorId GraphBuilder::hyper_sublayer(const StackContext& stack, const std::string& name,
                                      double dropout_probability, TensorId streams,
                                      Function function) {
  const std::string path = name + ".hyper_connection";
  const TensorId weights = stream_weights(stack, path, StreamWeights::Site::sublayer, streams);
  TensorId branch = sum_streams(stack, path, streams, weights);
  branch = norm(stack.spec->norm, name + "_norm", stack.rows(), branch);
  branch = dropout(name + ".dropout", dropout_probability, function(branch));
  return update_streams(stack, path, streams, branch, weights);
}

template <class Function>
TensorId GraphBuilder::sublayer(const StackContext& stack, const std::string& name,
                                double dropout_probability, TensorId hidden, Function function) {
  const StackSpec& spec = *stack.spec;
  if (spec.hyper_connections) {
    return hyper_sublayer(stack, name, dropout_probability, hidden, function);
  }
  const std::string norm_path = name + "_norm";
  const NormPlacement placement = stack.attention->norm_placement.value_or(spec.norm_placement);
  const bool before = placement == NormPlacement::pre || placement == NormPlacement::sandwich;
  const bool is_attention = name == "attention";
  if (placement == NormPlacement::residual) {
    hidden = norm(spec.norm, norm_path, stack.rows(), hidden);
  }
  TensorId branch = hidden;
  if (is_attention && shared_output_) branch = with_shared_output(stack, hidden);
  if (before && (!is_attention || stack.attention->norm)) {
    const std::int64_t rank = is_attention    ? stack.attention->norm_gate_rank
                              : name == "mlp" ? stack.ffn->norm_gate_rank
                                              : 0;
    branch = gated_norm(stack, rank, norm_path, branch);
  }
  branch = dropout(name + ".dropout", dropout_probability, function(branch));
  const bool of_experts = name == "mlp" && stack.ffn->experts && stack.ffn->experts->output_norm;
  if (placement == NormPlacement::sandwich || of_experts) {
    branch =
        norm(spec.output_norm.value_or(spec.norm), name + "_output_norm", stack.rows(), branch);
  }
  if (placement == NormPlacement::output) {
    branch = norm(spec.norm, norm_path, stack.rows(), branch);
  }
  if (spec.layer_scale) branch = layer_scale(stack, name + "_scale", branch);
  const double kept = name == "mlp"  ? stack.ffn->residual_multiplier
                      : is_attention ? stack.attention->residual_multiplier
                                     : 1;
  hidden = scaled(Part::residual, name + ".residual.scale", kept, hidden);
  TensorId sum = add_residual(stack, name + ".residual", hidden, branch);
  if (placement == NormPlacement::post) {
    sum = norm(spec.norm, norm_path, stack.rows(), sum);
  }
  return sum;
}

TensorId GraphBuilder::gated_norm(const StackContext& stack, std::int64_t gate_rank,
                                  const std::string& path, TensorId hidden) {
  const TensorId normed = norm(stack.spec->norm, path, stack.rows(), hidden);
  if (gate_rank == 0) return normed;
  FfnSpec network;
  network.kind = FfnKind::plain;
  network.activation = ActivationKind::silu;
  const TensorId gate =
      dense_network(stack, network, Integer{gate_rank}, path + ".gate", Part::norm_gate, normed);
  return emit_in_place(Part::norm_gate, path + ".gate.product",
                       OutputGate{ActivationKind::sigmoid, stack.rows() * Symbol::hidden_size},
                       {normed, gate});
}

TensorId GraphBuilder::layer_scale(const StackContext& stack, const std::string& path,
                                   TensorId branch) {
  const Expr width = Symbol::hidden_size;
  const WeightId factors = weight(Part::residual, path + ".weight", {width}, WeightRole::norm);
  return emit_in_place(Part::residual, path, ChannelScale{stack.rows(), width}, {branch},
                       {factors});
}

TensorId GraphBuilder::add_residual(const StackContext& stack, const std::string& path,
                                    TensorId hidden, TensorId branch) {
  const ResidualAdd op{stack.rows() * Symbol::hidden_size, stack.spec->residual_multiplier};
  return emit_in_place(Part::residual, path, op, {hidden, branch});
}

TensorId GraphBuilder::layer(const StackContext& stack, TensorId hidden) {
  switch (spec_.kind) {
    case ModelKind::attention_layer:
      return dropout("attention.dropout", stack.spec->dropout.attention_output,
                     self_attention(stack, hidden));
    case ModelKind::cross_attention_layer:
      return dropout("cross_attention.dropout", stack.spec->dropout.attention_output,
                     cross_attention(stack, hidden));
    case ModelKind::recurrent_layer:
      return recurrent(stack, hidden);
    case ModelKind::convolution_layer:
      return convolution_layer(stack, hidden);
    case ModelKind::feed_forward_layer:
      return dropout("mlp.dropout", stack.spec->dropout.ffn_output, feed_forward(stack, hidden));
    case ModelKind::encoder:
    case ModelKind::decoder:
    case ModelKind::encoder_decoder:
    case ModelKind::denoiser:
      break;
  }
  return transformer_layer(stack, hidden);
}

TensorId GraphBuilder::transformer_layer(const StackContext& stack, TensorId hidden) {
  if (stack.spec->conformer) return conformer_layer(stack, hidden);
  const bool attends = stack.attention->kind != AttentionKind::none;
  if (!attends && attends_to_images(spec_)) return TiledSteps{*this}.image_layer(stack, hidden);
  if (stack.spec->residual != ResidualKind::sequential) return parallel_layer(stack, hidden);
  if (stack.spec->altup) return altup_layer(stack, hidden);
  if (stack.spec->residual_block > 0) return attention_residual_layer(stack, hidden);
  const DropoutSpec& dropout = stack.spec->dropout;
  if (has_position_bias(stack, RelativeBiasSharing::layer)) relative_position_bias(stack);
  if (attends) {
    hidden = sublayer(stack, "attention", dropout.attention_output, hidden,
                      [&](TensorId input) { return self_attention(stack, input); });
  }
  if (stack.spec->cross_attention && !attends_to_images(spec_)) {
    hidden = sublayer(stack, "cross_attention", dropout.attention_output, hidden,
                      [&](TensorId input) { return cross_attention(stack, input); });
  }
  if (stack.ffn->kind == FfnKind::none) return hidden;
  hidden = sublayer(stack, "mlp", dropout.ffn_output, hidden,
                    [&](TensorId input) { return feed_forward(stack, input, hidden); });
  if (per_layer_input_) hidden = add_per_layer_input(stack, hidden);
  return stack.spec->layer_scalar ? scale_layer(stack, hidden) : hidden;
}

TensorId GraphBuilder::scale_layer(const StackContext& stack, TensorId hidden) {
  const WeightId scale = weight(Part::residual, "layer_scalar", {Integer{1}}, WeightRole::norm);
  graph_.weights[scale].kind = WeightKind::buffer;
  return emit_in_place(Part::residual, "layer_scalar",
                       TrainedScale{stack.rows(), Symbol::hidden_size}, {hidden}, {scale});
}

TensorId GraphBuilder::parallel_layer(const StackContext& stack, TensorId hidden) {
  const StackSpec& spec = *stack.spec;
  const TensorId input = norm(spec.norm, "attention_norm", stack.rows(), hidden);
  const TensorId ffn_input = spec.residual == ResidualKind::parallel_one_norm
                                 ? input
                                 : norm(spec.norm, "mlp_norm", stack.rows(), hidden);
  const TensorId attention =
      dropout("attention.dropout", spec.dropout.attention_output, self_attention(stack, input));
  const TensorId ffn =
      dropout("mlp.dropout", spec.dropout.ffn_output, feed_forward(stack, ffn_input));
  const TensorId both = add_residual(stack, "attention.residual", attention, ffn);
  return add_residual(stack, "mlp.residual", hidden, both);
}

TensorId GraphBuilder::final_norm(const StackContext& stack, TensorId hidden) {
  if (!stack.spec->final_norm) return hidden;
  begin_block(stack.path, stack.role, Integer{1}, hidden);
  if (stack.spec->hyper_connections) hidden = join_streams(stack, hidden);
  hidden = norm(*stack.spec->final_norm, "final_norm", stack.rows(), hidden);
  hidden = dropout("final_dropout", stack.spec->dropout.final, hidden);
  return end_block(hidden);
}

}  // namespace headroom::detail
