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
  stack.dropout.ffn_activation = config.probability_or({"activation_dropout"}, 0);
  stack.dropout.ffn_output = config.probability_or({"output_dropout"}, 0);
  spec.encoder = std::move(stack);
}

// As in torch.nn.TransformerEncoderLayer, or as Llama stores a gated network; a stack numbers its
// layers.
constexpr NameRule kFeedForward[] = {
    {"mlp.up.%", "layers.{}.linear1.%"},
    {"mlp.down.%", "layers.{}.linear2.%"},
    {"mlp.gate.%", "layers.{}.gate_proj.%"},
    {"mlp.up.%", "layers.{}.up_proj.%"},
    {"mlp.down.%", "layers.{}.down_proj.%"},
    {"mlp.up.%", "linear1.%"},
    {"mlp.down.%", "linear2.%"},
    {"mlp.gate.%", "gate_proj.%"},
    {"mlp.up.%", "up_proj.%"},
    {"mlp.down.%", "down_proj.%"},
};

}  // namespace

std::vector<Family> feed_forward_layer_families() {
  return {{.model_types = {"feed_forward"},
           .classes = one_class("FeedForward"),
           .reader = read_feed_forward_layer,
           .names = NameTable{{kFeedForward}, {}, {}},
           .gguf = None("a single layer has no GGUF file")}};
}

}  // namespace headroom::detail
