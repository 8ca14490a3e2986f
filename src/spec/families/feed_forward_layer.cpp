// One position-wise feed-forward network on its own (arXiv 1706.03762, section 3.3).
#include "../family.h"

namespace headroom::detail {

void read_feed_forward_layer(ConfigReader& config, ModelSpec& spec) {
  read_architecture(config, spec, {{"FeedForward", {}}});
  spec.kind = ModelKind::feed_forward_layer;
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  spec.embedding.input = InputKind::hidden_states;
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_hidden_layers"}, 1);
  stack.norm_placement = NormPlacement::none;
  stack.ffn = {config.flag_or({"gated"}, false) ? FfnKind::gated : FfnKind::plain,
               config.size({"intermediate_size", "dim_feedforward"}),
               read_activation(config, {"hidden_act"}, ActivationKind::relu),
               config.flag_or({"mlp_bias"}, true)};
  spec.encoder = std::move(stack);
}

}  // namespace headroom::detail
