#include <utility>

#include "headroom/complexity.h"
#include "headroom/error.h"

namespace headroom {
namespace {

void require_plain_softmax(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  const AttentionSpec& attention = stack.self_attention;
  const bool plain = spec.has_attention() && !spec.reads_two_sequences() &&
                     attention.kind == AttentionKind::softmax && !attention.latent &&
                     attention.window.kind == WindowKind::none && stack.variants.empty() &&
                     attention.alibi.kind == AlibiKind::none && !attention.sinks &&
                     attention.soft_cap == 0 &&
                     attention.num_attention_heads == attention.num_key_value_heads &&
                     spec.position.kind != PositionKind::relative_bias;
  if (plain) return;
  throw Error(ErrorCode::invalid_input, "its attention is not a plain softmax over all positions",
              spec.name, "choose a layer or model with multi-head softmax attention");
}

Model with_linear_attention(Model model) {
  ModelSpec& spec = model.spec;
  StackSpec& stack = spec.decoder ? *spec.decoder : *spec.encoder;
  stack.self_attention.kind = AttentionKind::linear;
  spec.name += " without softmax";
  return model;
}

}  // namespace

AssociativityReport make_associativity_report(const Model& model, AttentionImplementation attention,
                                              std::vector<std::int64_t> lengths) {
  require_plain_softmax(model.spec);
  std::vector<LayerComplexity> layers;
  layers.push_back(layer_complexity(model, attention));
  layers.push_back(layer_complexity(with_linear_attention(model), attention));
  return {make_complexity_report(std::move(layers), std::move(lengths))};
}

}  // namespace headroom
