// LFM2: gated short convolutions and grouped-query attention, dense and MoE (Liquid AI, LFM2
// technical report, arXiv 2511.23404; transformers, models/lfm2, models/lfm2_moe).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../common_keys.h"
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// The layers with attention; the others have a short convolution.
std::vector<bool> read_attention_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<std::int64_t> named = config.counts("full_attn_idxs");
  return read_full_attention_layers(config, num_layers, {"conv"}, [&](std::int64_t layer) {
    return named.empty() || std::ranges::find(named, layer) != named.end();
  });
}

void set_convolutions(ConfigReader& config, StackSpec& stack) {
  const ShortConvolutionSpec convolution{config.size_or({"conv_L_cache"}, 3),
                                         config.flag_or({"conv_bias"}, false)};
  vary_layers(stack, read_attention_layers(config, stack.num_layers), [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::short_convolution;
    variant.self_attention.short_convolution = convolution;
    variant.self_attention.query_key_norm.reset();
  });
}

void read_lfm2_decoder(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults) {
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  spec.position.rope.theta = config.number_or({"theta"}, spec.position.rope.theta);
  stack.norm.eps = config.number_or({"norm_eps"}, 1e-5);
  stack.final_norm = stack.norm;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  // Of the original code's file, and not read by the class.
  config.ignore({"num_heads", "block_dim", "block_mlp_init_scale", "block_norm_eps",
                 "block_out_init_scale", "block_use_swiglu", "block_use_xavier_init", "conv_dim",
                 "conv_dim_out", "conv_use_xavier_init", "use_pos_enc", "tie_embedding"});
}

DecoderDefaults lfm2_defaults(const DecoderDefaults::Sizes& sizes) {
  DecoderDefaults defaults;
  defaults.sizes = sizes;
  // Published configs say block_ff_dim.
  defaults.intermediate_size = sizes.intermediate_size;
  defaults.max_position_embeddings = 128000;
  defaults.num_key_value_heads = 8;
  defaults.rope.theta = 1e6;
  defaults.bias = BiasRule::none;
  return defaults;
}

/// The class shrinks the inner width to two thirds, scales it and rounds it up to a multiple.
std::int64_t adjusted_width(ConfigReader& config, std::int64_t width) {
  const bool adjusts = config.flag_or({"block_auto_adjust_ff_dim"}, true);
  const double factor = config.number_or({"block_ffn_dim_multiplier"}, 1);
  const std::int64_t multiple = config.size_or({"block_multiple_of"}, 256);
  if (!adjusts) return width;
  const std::int64_t two_thirds = 2 * width / 3;
  const std::int64_t scaled = truncated(config, "block_ffn_dim_multiplier", factor, two_thirds);
  if (scaled < 1) {
    config.fail("block_ffn_dim_multiplier", fmt::format("leaves nothing of {}", two_thirds),
                "write a fraction of the inner width");
  }
  return (scaled + multiple - 1) / multiple * multiple;
}

void read_lfm2(ConfigReader& config, ModelSpec& spec) {
  read_lfm2_decoder(config, spec, lfm2_defaults({2560, 12288, 32, 32, 65536}));
  StackSpec& stack = *spec.decoder;
  const std::int64_t width = config.size_or({"block_ff_dim"}, stack.ffn.intermediate_size);
  stack.ffn.intermediate_size = adjusted_width(config, width);
  set_convolutions(config, stack);
}

void read_lfm2_moe(ConfigReader& config, ModelSpec& spec) {
  read_lfm2_decoder(config, spec, lfm2_defaults({2048, 7168, 32, 32, 65536}));
  StackSpec& stack = *spec.decoder;
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 32, 4});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 1792);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = config.flag_or({"use_expert_bias"}, true);
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 1);
  const std::int64_t dense = config.count_or({"num_dense_layers"}, 2);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) routed.push_back(layer >= dense);
  set_experts(stack, routed, experts);
  set_convolutions(config, stack);
}

/// Kinds of LFM3's layers.
struct Lfm3Layers {
  std::vector<bool> windowed;
  std::vector<bool> attends;
};

Lfm3Layers read_lfm3_layers(ConfigReader& config, std::int64_t num_layers) {
  Lfm3Layers layers;
  const auto windowed = [](std::int64_t layer) { return layer % 4 == 0 && layer > 0; };
  const auto attends = [](std::int64_t layer) {
    return layer % 4 == 2 || (layer % 4 == 0 && layer > 0);
  };
  std::vector<std::string> types = config.texts("layer_types");
  const bool listed = !types.empty();
  if (listed && std::ssize(types) != num_layers) {
    config.fail("layer_types", "does not have an entry for every layer", "name each layer");
  }
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const std::string type = listed ? types[static_cast<std::size_t>(layer)] : "";
    const bool known = type == "conv" || type == "sliding_attention" || type == "full_attention";
    if (listed && !known) {
      config.fail("layer_types", "\"" + type + "\" is not supported",
                  "use conv, sliding_attention or full_attention");
    }
    layers.windowed.push_back(listed ? type == "sliding_attention" : windowed(layer));
    layers.attends.push_back(listed ? type != "conv" : attends(layer));
  }
  return layers;
}

/// LFM3: LFM2 with windows in half of the layers with attention, which have a RoPE of their own, a
/// gate on each head, and norms behind each part, too (Liquid AI; transformers, models/lfm3).
void read_lfm3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = lfm2_defaults({2048, 7680, 24, 16, 128000});
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.rope.by_layer_type = true;
  defaults.bias = BiasRule::key_for_all;
  read_lfm2_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  const std::int64_t head_dim = stack.self_attention.head_dim;
  RopeSpec full = spec.position.rope;
  full.rotated_pairs = head_dim / 4;  // half of them, over the whole head
  spec.position.rope = read_rope_of(config, "full_attention", spec.position, head_dim, full);
  const RopeSpec local = read_rope_of(config, "sliding_attention", spec.position, head_dim, {});
  const WindowSpec window = read_window(config, 256);
  if (config.flag_or({"use_sandwich_norm"}, true)) stack.norm_placement = NormPlacement::sandwich;
  if (config.flag_or({"use_attention_gate"}, true)) {
    stack.self_attention.output_gate = ContextGate::sigmoid_of_head;
  }
  const ShortConvolutionSpec convolution{config.size_or({"conv_L_cache"}, 7),
                                         config.flag_or({"conv_bias"}, false)};
  Lfm3Layers layers = read_lfm3_layers(config, stack.num_layers);
  layers.windowed.flip();
  vary_layers(stack, layers.windowed, [&](LayerVariant& variant) {
    variant.self_attention.window = window;
    variant.self_attention.rope = local;
  });
  vary_layers(stack, layers.attends, [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::short_convolution;
    variant.self_attention.short_convolution = convolution;
    variant.self_attention.query_key_norm.reset();
    variant.self_attention.output_gate = ContextGate::none;
  });
}

constexpr NameRule kLfm3[] = {
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_operator_norm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_ffn_norm.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_norm.%"},
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.gate_proj.%"},
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.g_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.o_proj.%"},
};

constexpr NameRule kLfm2[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.operator_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.ffn_norm.%"},
    {"decoder.layers.mixer.input_gate.%", "layers.{}.conv.in_proj.%", part(0)},
    {"decoder.layers.mixer.output_gate.%", "layers.{}.conv.in_proj.%", part(1)},
    {"decoder.layers.mixer.x.%", "layers.{}.conv.in_proj.%", part(2)},
    {"decoder.layers.mixer.convolution.%", "layers.{}.conv.conv.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.conv.out_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.w1.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.w3.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.w2.%"},
    {"decoder.final_norm.%", "embedding_norm.%"},
};

constexpr NameRule kLfm2Experts[] = {
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.feed_forward.expert_bias"},
    {"decoder.layers.mlp.router.%", "layers.{}.feed_forward.gate.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.feed_forward.experts.{e}.w1.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.feed_forward.experts.{e}.w3.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.feed_forward.experts.{e}.w2.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.feed_forward.experts.down_proj",
     stacked_experts()},
};

constexpr NameRule kLfm2Gguf[] = {
    {"layers.mixer.input_gate.%", "blk.{}.shortconv.in_proj.%", part(0)},
    {"layers.mixer.output_gate.%", "blk.{}.shortconv.in_proj.%", part(1)},
    {"layers.mixer.x.%", "blk.{}.shortconv.in_proj.%", part(2)},
    {"layers.mixer.convolution.%", "blk.{}.shortconv.conv.%"},
    {"layers.mixer.out.%", "blk.{}.shortconv.out_proj.%"},
    {"final_norm.%", "token_embd_norm.%"},
};

void finish_lfm2(const GgufMetadataReader& metadata, ConfigDraft& config) {
  std::vector<std::string> types;
  for (const bool attends : finish_key_value_heads(metadata, config)) {
    types.emplace_back(attends ? "full_attention" : "conv");
  }
  config.set_texts("layer_types", types);
}

ModelClasses lfm2_classes(const std::string& prefix) {
  return decoder_classes(prefix, {.tied = true, .float32_logits = true});
}

}  // namespace

std::vector<Family> lfm2_families() {
  return {{.model_types = {"lfm3"},
           .classes = lfm2_classes("Lfm3"),
           .reader = read_lfm3,
           .names = llama_names({kLfm3, kLfm2}),
           .gguf = None("not supported yet")},
          {.model_types = {"lfm2"},
           .classes = lfm2_classes("Lfm2"),
           .reader = read_lfm2,
           .names = llama_names({kLfm2}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "lfm2",
                              .common = gguf_hybrid_keys(),
                              .own = {{"feed_forward_length", "block_ff_dim"},
                                      {"attention.layer_norm_rms_epsilon", "norm_eps"},
                                      {"shortconv.l_cache", "conv_L_cache"}},
                              .constants = {{"block_auto_adjust_ff_dim", "false"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_lfm2}},
                            {kLfm2Gguf})},
          {.model_types = {"lfm2_moe"},
           .classes = lfm2_classes("Lfm2Moe"),
           .reader = read_lfm2_moe,
           .names = llama_names({kLfm2Experts, kLfm2}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "lfm2moe",
                              .common = gguf_hybrid_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"attention.layer_norm_rms_epsilon", "norm_eps"},
                                      {"expert_count", "num_experts"},
                                      {"expert_used_count", "num_experts_per_tok"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"leading_dense_block_count", "num_dense_layers"},
                                      {"shortconv.l_cache", "conv_L_cache"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_lfm2}},
                            {kLfm2Gguf})}};
}

}  // namespace headroom::detail
