// Convolutions over positions: torch.nn.Conv1d with equal input and output channels, one or a stack
// whose dilation grows with the layer (arXiv 1609.03499).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Each layer is a variant with its own dilation.
constexpr std::int64_t kMostConvolutionLayers = 1024;
/// A larger dilation exceeds every sequence length in use.
constexpr std::int64_t kLargestDilation = std::int64_t{1} << 32;

ConvolutionSpec read_first_layer(ConfigReader& config) {
  ConvolutionSpec layer;
  layer.kernel_size = config.size({"kernel_size"});
  layer.dilation = config.size_or({"dilation"}, 1);
  layer.causal = config.flag_or({"is_causal"}, false);
  layer.bias = config.flag_or({"bias"}, true);
  if (!config.text_or({"hidden_act"}, "").empty()) {
    layer.activation = read_activation(config, {"hidden_act"}, ActivationKind::relu);
  }
  return layer;
}

void require_reach(const ConfigReader& config, const ConvolutionSpec& layer) {
  const bool reaches = layer.kernel_size <= kLargestDilation && layer.dilation <= kLargestDilation;
  if (reaches &&
      product(config, "kernel_size", layer.kernel_size, layer.dilation) <= kLargestDilation) {
    return;
  }
  config.fail("kernel_size", "covers more than 2^32 positions with its dilation",
              "use a smaller kernel_size, dilation or dilation_base, or fewer layers");
}

/// The index of the variant with `layer`, added if missing.
std::size_t variant_with(StackSpec& stack, const ConvolutionSpec& layer) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (stack.convolution_of(variant) == layer) return variant;
  }
  stack.variants.push_back({stack.self_attention, stack.ffn, layer});
  return stack.variants.size();
}

/// Layer i has dilation · dilation_base^i; an activation separates two layers.
void read_convolution_layer(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::convolution_layer;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.input = InputKind::hidden_states;
  ConvolutionSpec layer = read_first_layer(config);
  const std::int64_t base = config.size_or({"dilation_base"}, 1);
  const auto activation = layer.activation;
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_layers", "num_hidden_layers"}, 1);
  stack.norm_placement = NormPlacement::none;
  if (stack.num_layers > kMostConvolutionLayers) {
    config.fail("num_layers", "is more than 1024", "use a smaller number");
  }
  for (std::int64_t i = 0; i < stack.num_layers; ++i) {
    const bool is_last = i + 1 == stack.num_layers;
    layer.activation = is_last ? std::nullopt : activation;
    require_reach(config, layer);
    if (i == 0) stack.convolution = layer;
    stack.variant_of_layer.push_back(variant_with(stack, layer));
    if (!is_last) layer.dilation = product(config, "dilation_base", layer.dilation, base);
  }
  if (stack.variants.empty()) stack.variant_of_layer.clear();
  (layer.causal ? spec.decoder : spec.encoder) = std::move(stack);
}

constexpr NameRule kConvolution[] = {
    {"convolution.%", "layers.{}.%"},
    {"convolution.%", "%"},
};

}  // namespace

std::vector<Family> convolution_layer_families() {
  return {{.model_types = {"convolution"},
           .classes = one_class("Conv1d"),
           .reader = read_convolution_layer,
           .names = NameTable{{kConvolution}, {}, {}},
           .gguf = None("a single layer has no GGUF file")}};
}

}  // namespace headroom::detail
