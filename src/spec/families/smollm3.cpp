// SmolLM3: Llama in which every fourth layer has no positions (Hugging Face, SmolLM3).
#include "../decoder.h"

namespace headroom::detail {

void read_smollm3(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "SmolLM3";
  family.tied = true;
  family.num_key_value_heads = 4;
  family.max_position_embeddings = 32768;
  family.rope.theta = 2e6;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  const std::vector<bool> turned = read_turned_layers(config, stack.num_layers);
  const bool windowed = config.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(config, 0);
  const auto has_window = [&](std::int64_t layer) {
    return windowed && !turned[static_cast<std::size_t>(layer)];
  };
  const std::vector<bool> windows = read_windowed_layers(config, stack.num_layers, has_window);
  vary_layers(stack, turned, [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windows, windowed ? window : WindowSpec{});
  config.ignore({"max_window_layers"});
}

}  // namespace headroom::detail
