// Command R and its successors: LayerNorm without bias, attention and FFN in parallel, scaled
// logits (Cohere, c4ai-command-r-v01; arXiv 2504.00698).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_cohere_like(ConfigReader& config, ModelSpec& spec) {
  constexpr double kLogitScaleWhenAbsent = 0.0625;
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 8192;
  defaults.norm = {NormKind::layer_norm, false};
  defaults.norm_eps = 1e-5;
  defaults.rope.layout = RopeLayout::interleaved;
  read_decoder(config, spec, defaults);
  spec.decoder->residual = ResidualKind::parallel_one_norm;
  const double scale = config.number_or({"logit_scale"}, kLogitScaleWhenAbsent);
  if (spec.head.language_model) spec.head.language_model->logit_scale = scale;
}

void read_cohere(ConfigReader& config, ModelSpec& spec) {
  read_cohere_like(config, spec);
  StackSpec& stack = *spec.decoder;
  if (config.flag_or({"use_qk_norm"}, false)) {
    stack.self_attention.query_key_norm =
        QueryKeyNormSpec{stack.norm, QueryKeyNormScope::each_head_own_weight};
  }
  config.ignore({"model_max_length"});
}

void read_cohere2(ConfigReader& config, ModelSpec& spec) {
  read_cohere_like(config, spec);
  StackSpec& stack = *spec.decoder;
  const std::int64_t pattern =
      config.size_or({"sliding_window_pattern", "_sliding_window_pattern", "layer_switch"}, 4);
  const auto rule = [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  // Layers with full attention have no positions; layers with RoPE have a window.
  stack.self_attention.window = read_window(config, 4096);
  vary_layers(stack, windowed, [](LayerVariant& variant) {
    variant.self_attention.window = {};
    variant.self_attention.rotary = false;
  });
  config.expect_flag("use_qk_norm", false);
  config.ignore({"order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
                 "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                 "use_parallel_embedding"});
}

}  // namespace

std::vector<Family> cohere_families() {
  return {{.model_types = {"cohere"},
           .classes = decoder_classes("Cohere", {.tied = true, .float32_logits = true}),
           .reader = read_cohere,
           .names = llama_names({query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "command-r",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"logit_scale", "logit_scale"}},
                              .flags = {{"blk.0.attn_q_norm.weight", "use_qk_norm"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::never}})},
          {.model_types = {"cohere2"},
           .classes = decoder_classes("Cohere2", {.tied = true, .float32_logits = true}),
           .reader = read_cohere2,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "cohere2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"logit_scale", "logit_scale"},
                                      {"attention.sliding_window", "sliding_window"}},
                              .tie = GgufTie::always,
                              .finish = finish_windows}})}};
}

}  // namespace headroom::detail
