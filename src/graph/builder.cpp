#include "builder.h"

#include <algorithm>

#include "headroom/error.h"
#include "headroom/tiled_tower.h"
#include "op_exprs.h"
#include "sizes.h"

namespace headroom {
namespace detail {
namespace {

StackContext main_stack(const ModelSpec& spec, Phase phase) {
  StackContext context;
  context.spec = &spec.main_stack();
  context.role = spec.encoder && spec.decoder ? StackRole::decoder : StackRole::single;
  context.path = spec.decoder ? "decoder" : "encoder";
  context.num_layers = Symbol::num_hidden_layers;
  context.tokens = Symbol::seq_len;
  context.position = &spec.position;
  const bool has_cache = context.spec->causal() && phase != Phase::train;
  context.keys = has_cache ? KeySource::cache : KeySource::projections;
  return context;
}

StackContext encoder_stack(const ModelSpec& spec) {
  StackContext context;
  context.spec = &*spec.encoder;
  context.role = StackRole::encoder;
  context.path = "encoder";
  context.num_layers = Symbol::num_encoder_layers;
  context.tokens = Symbol::enc_seq_len;
  context.position = &spec.encoder_positions();
  return context;
}

/// True for a weight of the model's head. An image encoder alone does not read those that lead from
/// its hidden states to one vector per image.
bool is_of_head(const CountedWeight& weight, const ModelSpec& spec) {
  if (weight.role == WeightRole::head) return true;
  const bool of_images = spec.embedding.image && weight.part == ModelPart::vision;
  return of_images && weight.role != WeightRole::embedding;
}

Part part_of(const CountedWeight& weight, const ModelSpec& spec, bool of_tower) {
  if (weight.use == CountedUse::unused_cross_attention) return Part::cross_attention_out;
  if (!of_tower && is_of_head(weight, spec)) return Part::head;
  const bool of_residual = weight.role == WeightRole::attention || weight.role == WeightRole::norm;
  if (spec.decoder && spec.decoder->residual_block > 0 && of_residual && !of_tower) {
    return Part::residual;  // unread: the first attention has a single stream
  }
  if (!of_tower && is_loaded(weight.use)) return Part::embeddings;
  switch (weight.part) {
    case ModelPart::text:
      return Part::head;  // dense layers after a sentence's pooling
    case ModelPart::vision:
      return Part::vision_tower;
    case ModelPart::audio:
      return Part::audio_tower;
    case ModelPart::adapter:
      return Part::adapter;
    case ModelPart::projector:
      break;
  }
  return Part::projector;
}

/// Row of the component table for a weight without an operator.
Component row_of(const CountedWeight& weight, const ModelSpec& spec) {
  const bool has_tower = spec.tower || spec.audio_tower;
  const bool of_tower = has_tower && weight.part != ModelPart::text;
  return {of_tower ? StackRole::tower : StackRole::single, part_of(weight, spec, of_tower)};
}

ModelPart part_of(const ModelSpec& spec, StackRole role) {
  if (spec.embedding.image) return ModelPart::vision;
  const bool hears = spec.embedding.audio && role != StackRole::decoder;
  return hears || spec.embedding.waveform ? ModelPart::audio : ModelPart::text;
}

}  // namespace

GraphBuilder::GraphBuilder(const ModelSpec& spec, const GraphOptions& options)
    : spec_(spec), options_(options) {
  graph_.options = options;
  graph_.sizes = sizes_of(spec);
  graph_.traits = traits_of(spec);
  graph_.relations = relations_between(graph_.sizes);
}

Graph GraphBuilder::build() && {
  if (spec_.encoder && spec_.decoder) {
    const StackContext encoder = encoder_stack(spec_);
    // A decode step reads the encoder's keys and values from the cross-attention cache.
    emit_nodes_ = options_.phase != Phase::decode;
    encoder_output_ = run_stack(encoder, input_hidden_states(encoder));
    if (spec_.encoder_hidden_size) set_encoder_width(*spec_.encoder_hidden_size);
    if (emit_nodes_) graph_.outputs.push_back(*encoder_output_);
    emit_nodes_ = true;
    position_bias_.reset();
  }
  if (attends_to_images(spec_)) {
    encoder_output_ = spec_.tower ? embed_images(*spec_.tower) : tensor("image_rows", {});
  } else if (spec_.tower) {
    (spec_.tower->pooling ? image_vectors_ : visual_tokens_) = embed_images(*spec_.tower);
  }
  if (spec_.audio_tower) audio_tokens_ = embed_sound(*spec_.audio_tower);
  const StackContext main = main_stack(spec_, options_.phase);
  if (spec_.denoiser) {
    denoise(main);
    return std::move(graph_);
  }
  TensorId hidden = input_hidden_states(main);
  if (spec_.embedding.per_layer) hidden = embed_per_layer(main, hidden);
  if (main.spec->altup) hidden = altup_inputs(main, hidden);
  if (spec_.kind == ModelKind::cross_attention_layer) {
    encoder_output_ = tensor("encoder_hidden_states",
                             {Symbol::batch_size, Symbol::enc_seq_len, Symbol::hidden_size});
    graph_.inputs.push_back(*encoder_output_);
  }
  head(main, run_stack(main, hidden));
  add_counted_weights();
  return std::move(graph_);
}

/// Gives all parts so far, which are the encoder's, its own width.
void GraphBuilder::set_encoder_width(std::int64_t width) {
  const std::function<Expr(const Expr&)> change = [width](const Expr& expr) {
    return expr.substitute(Symbol::hidden_size, Integer{width});
  };
  for (Tensor& tensor : graph_.tensors) {
    std::ranges::transform(tensor.shape, tensor.shape.begin(), change);
  }
  for (Weight& weight : graph_.weights) {
    std::ranges::transform(weight.shape, weight.shape.begin(), change);
  }
  for (Block& block : graph_.blocks) {
    for (Node& node : block.nodes) node.op = map_exprs(std::move(node.op), change);
  }
}

void GraphBuilder::add_counted_weights() {
  for (const CountedWeight& counted : spec_.counted_only) {
    std::vector<Expr> shape;
    for (const std::int64_t size : counted.shape) shape.emplace_back(Integer{size});
    graph_.weights.push_back({counted.path, std::move(shape), counted.role, Integer{counted.repeat},
                              row_of(counted, spec_)});
    graph_.weights.back().model_part = counted.part;
    if (counted.use == CountedUse::image_tokens) {
      graph_.weights.back().readers = Readers::image_tokens;
    }
  }
}

bool GraphBuilder::reads_images() const {
  return options_.images == ImageInputs::present && options_.phase != Phase::decode;
}

bool GraphBuilder::reads_sound() const {
  return options_.audio == AudioInputs::present && options_.phase != Phase::decode;
}

void GraphBuilder::begin_block(const std::string& path, StackRole role, const Expr& repeat,
                               TensorId carried_in) {
  role_ = role;
  const bool needs_prefix =
      role != StackRole::single && !path.starts_with("encoder") && !path.starts_with("decoder");
  const std::string prefix = role == StackRole::encoder ? "encoder." : "decoder.";
  Block block;
  block.path = needs_prefix ? prefix + path : path;
  block.repeat = repeat;
  block.carried_in = carried_in;
  block.carried_out = carried_in;
  graph_.blocks.push_back(std::move(block));
}

TensorId GraphBuilder::end_block(TensorId carried_out) {
  graph_.blocks.back().carried_out = carried_out;
  if (graph_.blocks.back().nodes.empty()) graph_.blocks.pop_back();
  return carried_out;
}

TensorId GraphBuilder::tensor(std::string name, std::vector<Expr> shape, ElementType type) {
  graph_.tensors.push_back({std::move(name), std::move(shape), type});
  return graph_.tensors.size() - 1;
}

WeightId GraphBuilder::weight(Part part, const std::string& path, std::vector<Expr> shape,
                              WeightRole role) {
  const Block& block = graph_.blocks.back();
  if (reuses_weights_) {
    const auto found =
        std::ranges::find(graph_.weights, block.path + "." + scope_ + path, &Weight::path);
    if (found != graph_.weights.end()) return static_cast<WeightId>(found - graph_.weights.begin());
  }
  const Expr repeat = block.layers_per_weights == 1 ? block.repeat : Expr(*weight_groups_);
  graph_.weights.push_back(
      {block.path + "." + scope_ + path, std::move(shape), role, repeat, {role_, part}});
  graph_.weights.back().model_part = part_of(spec_, role_);
  return graph_.weights.size() - 1;
}

WeightId GraphBuilder::weight_of_layer(const std::string& path) const {
  const std::string whole = graph_.blocks.back().path + "." + path;
  const auto found =
      std::ranges::find(graph_.weights.rbegin(), graph_.weights.rend(), whole, &Weight::path);
  if (found == graph_.weights.rend()) {
    throw Error(ErrorCode::internal, "a layer without the weight " + whole);
  }
  return static_cast<WeightId>(graph_.weights.rend() - found) - 1;
}

TensorId GraphBuilder::emit(Part part, const std::string& path, Op op, std::vector<TensorId> inputs,
                            std::vector<WeightId> weights, std::vector<Expr> output_shape) {
  const TensorId output = tensor(scope_ + path, std::move(output_shape));
  if (emit_nodes_) {
    graph_.blocks.back().nodes.push_back({scope_ + path + layer_slice_,
                                          {role_, part},
                                          std::move(op),
                                          std::move(inputs),
                                          output,
                                          std::move(weights),
                                          Placement::new_buffer,
                                          layer_});
  }
  return output;
}

TensorId GraphBuilder::emit_in_place(Part part, const std::string& path, Op op,
                                     std::vector<TensorId> inputs, std::vector<WeightId> weights) {
  std::vector<Expr> shape = graph_.tensors[inputs.front()].shape;
  const TensorId output =
      emit(part, path, std::move(op), std::move(inputs), std::move(weights), std::move(shape));
  if (emit_nodes_) graph_.blocks.back().nodes.back().placement = Placement::in_place;
  return output;
}

TensorId GraphBuilder::linear(const LinearParts& parts, TensorId input,
                              std::vector<Expr> output_shape) {
  std::vector<WeightId> weights;
  Expr out_features;
  for (const Projection& projection : parts.projections) {
    out_features += projection.out_features;
    weights.push_back(weight(parts.part, projection.name + ".weight",
                             {projection.out_features, parts.in_features}, parts.role));
    graph_.weights[weights.back()].parts = projection.parts;
    if (!parts.bias || projection.bias == Projection::Bias::none) continue;
    weights.push_back(
        weight(parts.part, projection.name + ".bias", {projection.out_features}, parts.role));
    graph_.weights[weights.back()].parts = projection.parts;
  }
  return emit(parts.part, parts.path,
              Linear{parts.rows, parts.in_features, out_features, parts.bias, parts.row_width},
              {input}, std::move(weights), std::move(output_shape));
}

TensorId GraphBuilder::norm(const NormSpec& spec, const std::string& path, const Expr& rows,
                            TensorId input) {
  return norm(spec, path, Norm{spec, rows, Symbol::hidden_size, {}}, input);
}

TensorId GraphBuilder::norm(const NormSpec& spec, const std::string& path, Norm op,
                            TensorId input) {
  // The norm after an embedding belongs to the embeddings row.
  const bool in_embedding = graph_.blocks.back().path.ends_with("embeddings");
  const Part own = spec.kind == NormKind::layer_norm ? Part::layer_norm : Part::rms_norm;
  const Part part = in_embedding ? Part::embeddings : own;
  std::vector<WeightId> weights = norm_weights(spec, part, path, {op.width});
  return emit_in_place(part, path, std::move(op), {input}, std::move(weights));
}

std::vector<WeightId> GraphBuilder::norm_weights(const NormSpec& spec, Part part,
                                                 const std::string& path,
                                                 const std::vector<Expr>& shape) {
  if (spec.weight == NormWeight::none) return {};
  std::vector<WeightId> weights{weight(part, path + ".weight", shape, WeightRole::norm)};
  if (spec.bias) weights.push_back(weight(part, path + ".bias", shape, WeightRole::norm));
  return weights;
}

TensorId GraphBuilder::dropout(const std::string& path, double probability, TensorId input,
                               Part part) {
  if (!training() || probability == 0) return input;
  const Expr elements = graph_.tensors[input].elements();
  return emit_in_place(part, path, Dropout{elements}, {input});
}

std::vector<Expr> GraphBuilder::hidden_shape(const StackContext& stack) const {
  return {Symbol::batch_size, stack.tokens, Symbol::hidden_size};
}

Expr GraphBuilder::sized(Symbol symbol, std::int64_t value) const {
  return graph_.sizes.get(symbol) == Integer{value} ? Expr(symbol) : Expr(Integer{value});
}

HeadSizes GraphBuilder::head_sizes(const AttentionSpec& attention) const {
  const LatentAttentionSpec latent = attention.latent.value_or(LatentAttentionSpec{});
  return {sized(Symbol::num_attention_heads, attention.num_attention_heads),
          sized(Symbol::num_key_value_heads, attention.num_key_value_heads),
          sized(Symbol::head_dim, attention.head_dim),
          sized(Symbol::value_head_dim, attention.value_head_dim),
          sized(Symbol::qk_nope_head_dim, latent.qk_nope_head_dim),
          sized(Symbol::qk_rope_head_dim, latent.qk_rope_head_dim)};
}

Expr GraphBuilder::embedding_width() const {
  return has_narrow_embedding() ? Expr(Symbol::embedding_size) : Expr(Symbol::hidden_size);
}

}  // namespace detail

Graph build_graph(const ModelSpec& spec, const GraphOptions& options) {
  return detail::GraphBuilder(spec, options).build();
}

}  // namespace headroom
