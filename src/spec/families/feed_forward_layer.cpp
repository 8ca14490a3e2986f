// A single position-wise feed-forward network (arXiv 1706.03762, section 3.3).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_feed_forward_layer(ConfigReader& config, ModelSpec& spec) {
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

}  // namespace

std::vector<Family> feed_forward_layer_families() {
  return {{.model_types = {"feed_forward"},
           .classes = one_class("FeedForward"),
           .reader = read_feed_forward_layer,
           .names = None("a single layer has only random weights"),
           .gguf = None("a single layer has no GGUF file")}};
}

}  // namespace headroom::detail
