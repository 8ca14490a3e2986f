// Layers of a diffusion transformer: joint layers with weights for image and text each, single
// layers that run both as one sequence, and layers with cross-attention to the text.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "builder.h"

namespace headroom::detail {
namespace {

// Modulation vectors: a shift, a scale and a gate of each branch.
constexpr std::int64_t kBranchVectors = 3;
constexpr std::int64_t kGate = 2;  // after shift and scale

/// Text tokens are at the beginning of a joint sequence.
Expr joint_tokens() { return Expr(Symbol::enc_seq_len) + Symbol::seq_len; }

StackContext with_tokens(StackContext stack, const Expr& tokens) {
  stack.tokens = tokens;
  return stack;
}

StackContext text_of(const StackContext& stack) { return with_tokens(stack, Symbol::enc_seq_len); }

StackContext joint_of(const StackContext& stack) { return with_tokens(stack, joint_tokens()); }

/// Suffix of the node paths of `count` layers from `first` on, in a stack of other layers too.
std::string slice_of(std::int64_t first, std::int64_t count, std::int64_t all) {
  return count == all ? std::string() : fmt::format("[{}:{}]", first, first + count);
}

}  // namespace

template <class Layer>
void GraphBuilder::denoiser_layers(const std::string& path, LayerSpan span, TensorId carried_in,
                                   Layer layer) {
  begin_block(path, StackRole::single, Integer{span.count}, carried_in);
  Block& block = graph_.blocks.back();
  block.layers_per_run = 1;
  block.first_layer = span.first;
  layer_slice_ = slice_of(span.first, span.count, span.all);
  const TensorId out = layer();
  layer_slice_.clear();
  end_block(out);
}

TensorId GraphBuilder::cross_layers(StackContext stack, TensorId hidden) {
  use_denoiser_layer(stack);
  const std::int64_t count = stack.spec->num_layers;
  denoiser_layers("layers", {0, count, count}, hidden,
                  [&] { return hidden = cross_layer(stack, hidden); });
  return hidden;
}

void GraphBuilder::use_denoiser_layer(StackContext& stack) const {
  stack.attention = &stack.spec->self_attention;
  stack.ffn = &stack.spec->ffn;
  stack.heads = head_sizes(*stack.attention);
}

TensorId GraphBuilder::cross_layer(const StackContext& stack, TensorId hidden) {
  const DenoiserSpec& spec = *spec_.denoiser;
  const TensorId vectors = modulation_vectors("modulation", kLayerVectors, spec.modulation);
  TensorId branch = modulated_norm(stack, "attention_norm", hidden, vectors, 0);
  branch = self_attention(stack, branch);
  hidden = add_gated(stack, "attention", hidden, branch, vectors, kGate);
  branch = hidden;
  if (spec.text.cross_norm) {
    const NormSpec trained{NormKind::layer_norm, true, stack.spec->norm.eps};
    branch = norm(trained, "cross_attention_norm", stack.rows(), hidden);
  }
  branch = cross_attention(stack, branch);
  hidden = add_residual(stack, "cross_attention.residual", hidden, branch);
  return gated_network(stack, hidden, vectors, kBranchVectors);
}

TensorId GraphBuilder::gated_network(const StackContext& stack, TensorId hidden, TensorId vectors,
                                     std::int64_t first) {
  const TensorId branch = modulated_norm(stack, "mlp_norm", hidden, vectors, first);
  return add_gated(stack, "mlp", hidden, feed_forward(stack, branch), vectors, first + kGate);
}

TensorId GraphBuilder::joint_layers(StackContext stack, TensorId hidden) {
  use_denoiser_layer(stack);
  const DenoiserSpec& spec = *spec_.denoiser;
  const std::int64_t joint = stack.spec->num_layers - spec.num_single_layers;
  JointStates states{hidden, *encoder_output_};
  for (std::int64_t first = 0; first < joint;) {
    const JointLayer layer = joint_layer_at(first);
    std::int64_t count = 1;
    while (first + count < joint && joint_layer_at(first + count) == layer) ++count;
    denoiser_layers("joint_layers", {first, count, joint}, states.image, [&] {
      const TensorId text = states.text;
      states = joint_layer(stack, layer, states);
      if (layer.text == TextOutput::states) {
        graph_.blocks.back().carried_text = CarriedTensor{text, states.text};
      }
      return states.image;
    });
    first += count;
  }
  if (spec.num_single_layers == 0) return states.image;
  return single_layers(joint_of(stack), states);
}

JointLayer GraphBuilder::joint_layer_at(std::int64_t layer) const {
  const DenoiserSpec& spec = *spec_.denoiser;
  const std::int64_t joint = spec_.encoder->num_layers - spec.num_single_layers;
  const auto& dual = spec.dual_attention_layers;
  const bool ends = spec.text.ends_in_last_joint && layer + 1 == joint;
  const bool attends_twice = std::ranges::find(dual, layer) != dual.end();
  return {ends ? TextOutput::none : TextOutput::states,
          attends_twice ? ImageAttentions::two : ImageAttentions::one};
}

template <class Function>
auto GraphBuilder::in_scope(std::string scope, Function function) {
  std::swap(scope_, scope);
  auto result = function();
  std::swap(scope_, scope);
  return result;
}

/// `context` plus that of a second cross-attention with the same queries, to the reference image.
TensorId GraphBuilder::add_reference_image(const StackContext& stack, TensorId queries,
                                           TensorId context) {
  const AttentionSpec& attention = *stack.spec->cross_attention;
  const HeadSizes heads = head_sizes(attention);
  const Expr tokens = Integer{spec_.denoiser->reference_image.tokens};
  const Expr width = heads.key_width() + heads.value_width();
  return in_scope("image.", [&] {
    const LinearParts key_value{Part::cross_attention_key_value,
                                "cross_attention.key_value",
                                WeightRole::attention,
                                kBatch * tokens,
                                Symbol::hidden_size,
                                {{"cross_attention.key", heads.key_width()},
                                 {"cross_attention.value", heads.value_width()}},
                                attention.qkv_bias};
    TensorId projected = linear(key_value, *reference_image_, {kBatch, tokens, width});
    projected = cross_attention_norm(attention, "cross_attention.key_norm",
                                     {kBatch * tokens, width, {}, heads.kv_heads, heads.head_dim},
                                     projected);
    const AttentionOperands operands{heads.shape(stack.tokens, tokens), {queries, projected}};
    const TensorId of_image =
        softmax_attention(stack, cross_attention_parts(), attention, operands);
    return emit_in_place(Part::cross_attention_context, "cross_attention.sum",
                         ResidualAdd{stack.rows() * heads.context_width()}, {context, of_image});
  });
}

TensorId GraphBuilder::joint_heads(const StackContext& stack, TensorId normed) {
  const TensorId qkv = project_heads(stack, normed);
  return stack.attention->query_key_norm ? query_key_norm(stack, qkv) : qkv;
}

TensorId GraphBuilder::join_sequences(const std::string& path, const Expr& width, TensorId text,
                                      TensorId image) {
  const SequenceRows op{SequenceRows::Kind::join, kBatch, Symbol::enc_seq_len, joint_tokens(),
                        width};
  return emit(Part::attention_core, path, op, {text, image}, {}, {kBatch, joint_tokens(), width});
}

TensorId GraphBuilder::take_tokens(const StackContext& stack, const std::string& path,
                                   const Expr& first, TensorId sequence) {
  const Expr width = graph_.tensors[sequence].shape.back();
  const SequenceRows op{SequenceRows::Kind::take, kBatch, first, stack.tokens, width};
  return emit(Part::attention_core, path, op, {sequence}, {}, {kBatch, stack.tokens, width});
}

TensorId GraphBuilder::attend(const StackContext& stack, TensorId qkv) {
  const TensorId rotated = apply_rope(stack, qkv);
  const AttentionOperands operands{stack.heads.shape(stack.tokens, stack.tokens), {rotated}};
  return softmax_attention(stack, self_attention_parts(), *stack.attention, operands);
}

TensorId GraphBuilder::attention_branch(const StackContext& stack, TensorId context) {
  return attention_output(stack, self_attention_parts(), *stack.attention,
                          stack.heads.context_width(), context);
}

JointStates GraphBuilder::joint_layer(const StackContext& stack, JointLayer layer,
                                      JointStates states) {
  const StackContext text = text_of(stack);
  const bool twice = layer.attentions == ImageAttentions::two;
  const bool has_text = layer.text == TextOutput::states;
  const ModulationSource source = spec_.denoiser->modulation;
  const TensorId image_vectors =
      modulation_vectors("modulation", kLayerVectors + (twice ? kBranchVectors : 0), source);
  const TensorId image_qkv =
      joint_heads(stack, modulated_norm(stack, "attention_norm", states.image, image_vectors, 0));
  TensorId text_vectors = 0;
  const TensorId text_qkv = in_scope("text.", [&] {
    // Without text states behind it, a layer only shifts and scales.
    text_vectors = modulation_vectors("modulation", has_text ? kLayerVectors : kGate, source);
    return joint_heads(text, modulated_norm(text, "attention_norm", states.text, text_vectors, 0));
  });
  const TensorId joined =
      join_sequences("attention.join", stack.heads.row_width(), text_qkv, image_qkv);
  const TensorId context = attend(joint_of(stack), joined);
  const TensorId image_context =
      take_tokens(stack, "attention.image_tokens", Symbol::enc_seq_len, context);
  const TensorId image = states.image;
  states.image = add_gated(stack, "attention", image, attention_branch(stack, image_context),
                           image_vectors, kGate);
  if (twice) states.image = second_attention(stack, image, states.image, image_vectors);
  states.image = gated_network(stack, states.image, image_vectors, kBranchVectors);
  if (!has_text) return states;
  states.text = in_scope("text.", [&] {
    const TensorId own = take_tokens(text, "attention.tokens", {}, context);
    const TensorId added =
        add_gated(text, "attention", states.text, attention_branch(text, own), text_vectors, kGate);
    return gated_network(text, added, text_vectors, kBranchVectors);
  });
  return states;
}

TensorId GraphBuilder::second_attention(const StackContext& stack, TensorId image, TensorId hidden,
                                        TensorId vectors) {
  return in_scope("second.", [&] {
    const TensorId normed = modulated_norm(stack, "attention_norm", image, vectors, kLayerVectors);
    const TensorId context = attend(stack, joint_heads(stack, normed));
    return add_gated(stack, "attention", hidden, attention_branch(stack, context), vectors,
                     kLayerVectors + kGate);
  });
}

TensorId GraphBuilder::single_layers(const StackContext& stack, JointStates states) {
  begin_block("single_layers", StackRole::single, Integer{1}, states.image);
  TensorId hidden = end_block(join_sequences("join", kHidden, states.text, states.image));
  const std::int64_t count = spec_.denoiser->num_single_layers;
  denoiser_layers("single_layers", {0, count, count}, hidden,
                  [&] { return hidden = single_layer(stack, hidden); });
  begin_block("single_layers", StackRole::single, Integer{1}, hidden);
  const StackContext image = with_tokens(stack, Symbol::seq_len);
  return end_block(take_tokens(image, "image_tokens", Symbol::enc_seq_len, hidden));
}

TensorId GraphBuilder::single_layer(const StackContext& stack, TensorId hidden) {
  const Expr width = sized(Symbol::intermediate_size, stack.ffn->intermediate_size);
  const Expr rows = stack.rows();
  const TensorId vectors =
      modulation_vectors("modulation", kBranchVectors, spec_.denoiser->modulation);
  const TensorId normed = modulated_norm(stack, "norm", hidden, vectors, 0);
  const LinearParts up{Part::mlp_up,        "mlp.up", WeightRole::mlp, rows, kHidden,
                       {{"mlp.up", width}}, true};
  TensorId inner = linear(up, normed, {kBatch, stack.tokens, width});
  inner = emit_in_place(Part::mlp_activation, "mlp.activation",
                        Activation{stack.ffn->activation, rows * width}, {inner});
  const TensorId context = attend(stack, joint_heads(stack, normed));
  const Expr both = stack.heads.context_width() + width;
  const TensorId joined =
      emit(Part::mlp_down, "mlp.join", Concatenate{rows, stack.heads.context_width(), width},
           {context, inner}, {}, {kBatch, stack.tokens, both});
  const LinearParts down{Part::mlp_down,          "mlp.down", WeightRole::mlp, rows, both,
                         {{"mlp.down", kHidden}}, true};
  return add_gated(stack, "mlp", hidden, linear(down, joined, hidden_shape(stack)), vectors, kGate);
}

}  // namespace headroom::detail
