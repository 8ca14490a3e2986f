// RWKV-4: time mixing by a decaying sum of values and channel mixing, each with the position before
// (arXiv 2305.13048; transformers, models/rwkv). RWKV-5 and RWKV-7 have a state matrix per head
// (arXiv 2404.05892, RWKV's modeling_rwkv5.py; arXiv 2503.14456, fla's models/rwkv7).
#include <algorithm>
#include <cmath>

#include "../common_keys.h"
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_rwkv(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kFfnPerHidden = 4;
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::none;
  spec.position.max_position_embeddings = config.size_or({"context_length"}, 1024);
  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.self_attention.kind = AttentionKind::weighted_key_value;
  stack.self_attention.weighted_key_value_width =
      config.size_or({"attention_hidden_size"}, spec.hidden_size);
  stack.self_attention.causal = true;
  stack.ffn.kind = FfnKind::channel_mix;
  stack.ffn.activation = ActivationKind::relu_squared;
  const std::int64_t inner = product(config, "hidden_size", kFfnPerHidden, spec.hidden_size);
  stack.ffn.intermediate_size = config.size_or({"intermediate_size"}, inner);
  stack.norm_placement = NormPlacement::pre;
  stack.norm.eps = config.number_or({"layer_norm_epsilon"}, 1e-5);
  stack.final_norm = stack.norm;
  spec.embedding.norm = stack.norm;
  spec.decoder = stack;
  // Halves the hidden states every so many layers, and the weights that add to them.
  config.ignore({"rescale_every"});
}

/// Number of heads of `head_dim` channels in `width`.
std::int64_t heads_in(const ConfigReader& config, std::string_view key, std::int64_t width,
                      std::int64_t head_dim) {
  if (head_dim <= width && width % head_dim == 0) return width / head_dim;
  config.fail(key, "does not divide the width of the layer", "use heads that fill the width");
}

void read_rwkv5(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWidthMultiple = 32;
  read_rwkv(config, spec);
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  TimeMixSpec mix;
  mix.kind = TimeMixKind::eagle;
  mix.head_dim = config.size_or_of_class({"head_size"}, 64);
  mix.value_head_dim = mix.head_dim;
  mix.num_heads = heads_in(config, "head_size", attention.weighted_key_value_width, mix.head_dim);
  attention.kind = AttentionKind::time_mix;
  attention.weighted_key_value_width = 0;
  attention.time_mix = mix;
  // 3.5 times the width, in whole multiples.
  const std::int64_t wide = product(config, "hidden_size", 7, spec.hidden_size) / 2;
  stack.ffn.intermediate_size =
      config.size_or({"intermediate_size"}, wide / kWidthMultiple * kWidthMultiple);
  config.expect_text("model_version", "5_2");
}

/// Sizes of RWKV-7 that fla's class computes where a config has null.
std::int64_t read_inner_size(ConfigReader& config, std::int64_t hidden_size) {
  constexpr std::int64_t kMultiple = 32;
  const std::int64_t ratio = config.size_or({"hidden_ratio"}, 4);
  const std::int64_t inner = product(config, "hidden_ratio", ratio, hidden_size);
  return config.size_or({"intermediate_size"}, (inner + kMultiple - 1) / kMultiple * kMultiple);
}

/// The rank of `key`: `absent` without it; of a null, the multiple of 32 nearest to `factor` times
/// the root of the width, at least 32.
std::int64_t read_rank(ConfigReader& config, std::string_view key, std::int64_t absent,
                       double factor, std::int64_t hidden_size) {
  constexpr double kMultiple = 32;
  if (!config.is_null(key)) return config.size_or_of_class({key}, absent);
  config.ignore({key});
  const double rank = factor * std::sqrt(static_cast<double>(hidden_size)) / kMultiple;
  return static_cast<std::int64_t>(std::max(1.0, std::nearbyint(rank)) * kMultiple);
}

std::int64_t read_value_width(ConfigReader& config, const StackSpec& stack, std::int64_t width) {
  const std::vector<std::int64_t> listed = config.list_of_counts("value_dim");
  if (listed.empty()) return config.size_or({"value_dim"}, width);
  const bool equal = std::ranges::all_of(
      listed, [&](std::int64_t value) { return value == listed.front() && value > 0; });
  if (!equal || std::ssize(listed) != stack.num_layers) {
    config.fail("value_dim", "does not have one width for every layer",
                "write the same width once for each of num_hidden_layers");
  }
  return listed.front();
}

TimeMixSpec read_goose(ConfigReader& config, const ModelSpec& spec, const StackSpec& stack) {
  constexpr double kRankedHead = 64;  // ranks of wider heads are larger
  const std::int64_t width = spec.hidden_size;
  TimeMixSpec mix;
  const auto heads = config.optional_size({"num_heads"});
  const auto head_dim = config.optional_size({"head_dim"});
  mix.head_dim = head_dim.value_or(heads && config.is_null("head_dim") ? width / *heads : 64);
  if (mix.head_dim == 0) config.fail("num_heads", "exceeds hidden_size", "use fewer heads");
  mix.num_heads = heads_in(config, "head_dim", width, mix.head_dim);
  mix.value_head_dim =
      heads_in(config, "value_dim", read_value_width(config, stack, width), mix.num_heads);
  const double factor = static_cast<double>(mix.head_dim) / kRankedHead;
  mix.decay_rank = read_rank(config, "decay_low_rank_dim", 64, 2.5 * factor, width);
  mix.gate_rank = read_rank(config, "gate_low_rank_dim", 128, 5, width);
  mix.rate_rank = read_rank(config, "a_low_rank_dim", 64, 2.5 * factor, width);
  mix.value_rank = read_rank(config, "v_low_rank_dim", 16, 1.7 * factor, width);
  mix.norm_eps = static_cast<double>(mix.head_dim) * stack.norm.eps;
  return mix;
}

void read_rwkv7(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size_or_of_class({"hidden_size"}, 2048);
  spec.embedding.vocab_size = config.size_or_of_class({"vocab_size"}, 32000);
  spec.position.kind = PositionKind::none;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 2048);
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_hidden_layers"}, 24);
  if (!config.has("num_hidden_layers")) config.note_of_class("num_hidden_layers", "24");
  stack.norm = {NormKind::layer_norm, config.flag_or({"norm_bias"}, true),
                config.number_or({"norm_eps"}, 1e-5)};
  stack.final_norm = stack.norm;
  if (config.flag_or({"norm_first"}, true)) spec.embedding.norm = stack.norm;
  stack.ffn.kind = FfnKind::channel_mix;
  stack.ffn.receptance = false;
  config.expect_text("hidden_act", "sqrelu");
  stack.ffn.activation = ActivationKind::relu_squared;
  stack.ffn.intermediate_size = read_inner_size(config, spec.hidden_size);
  stack.self_attention.kind = AttentionKind::time_mix;
  stack.self_attention.causal = true;
  stack.self_attention.time_mix = read_goose(config, spec, stack);
  // The first layer's values are those that the others take a share of.
  std::vector<bool> first(static_cast<std::size_t>(stack.num_layers), false);
  first.front() = true;
  const TimeMixSpec others = *stack.self_attention.time_mix;
  stack.self_attention.time_mix->value_rank = 0;
  vary_layers(stack, first,
              [&](LayerVariant& variant) { variant.self_attention.time_mix = others; });
  spec.decoder = stack;
  config.expect_empty("attn");  // layers of attention between the others
  config.ignore({"attn_mode", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy",
                 "use_l2warp", "rescale_every"});
}

constexpr NameRule kRwkv[] = {
    {"embeddings.word_embeddings.%", "embeddings.%"},
    {"embeddings.norm.%", "blocks.0.pre_ln.%"},
    {"decoder.layers.attention_norm.%", "blocks.{}.ln1.%"},
    {"decoder.layers.mixer.mix_key", "blocks.{}.attention.time_mix_key"},
    {"decoder.layers.mixer.mix_value", "blocks.{}.attention.time_mix_value"},
    {"decoder.layers.mixer.mix_receptance", "blocks.{}.attention.time_mix_receptance"},
    {"decoder.layers.mixer.decay", "blocks.{}.attention.time_decay"},
    {"decoder.layers.mixer.first", "blocks.{}.attention.time_first"},
    {"decoder.layers.mixer.key.%", "blocks.{}.attention.key.%"},
    {"decoder.layers.mixer.value.%", "blocks.{}.attention.value.%"},
    {"decoder.layers.mixer.receptance.%", "blocks.{}.attention.receptance.%"},
    {"decoder.layers.mixer.out.%", "blocks.{}.attention.output.%"},
    {"decoder.layers.mlp_norm.%", "blocks.{}.ln2.%"},
    {"decoder.layers.mlp.mix_key", "blocks.{}.feed_forward.time_mix_key"},
    {"decoder.layers.mlp.mix_receptance", "blocks.{}.feed_forward.time_mix_receptance"},
    {"decoder.layers.mlp.receptance.%", "blocks.{}.feed_forward.receptance.%"},
    {"decoder.layers.mlp.up.%", "blocks.{}.feed_forward.key.%"},
    {"decoder.layers.mlp.down.%", "blocks.{}.feed_forward.value.%"},
    {"decoder.final_norm.%", "ln_out.%"},
    {"head.language_model.%", "head.%"},
};

constexpr NameRule kEagle[] = {
    {"decoder.layers.mixer.mix_gate", "blocks.{}.attention.time_mix_gate"},
    {"decoder.layers.mixer.first", "blocks.{}.attention.time_faaaa"},
    {"decoder.layers.mixer.gate.%", "blocks.{}.attention.gate.%"},
    {"decoder.layers.mixer.norm.%", "blocks.{}.attention.ln_x.%"},
};

/// Names of fla's class; its first version stores the six mixes of a layer as one tensor.
constexpr NameRule kGoose[] = {
    {"embeddings.word_embeddings.%", "embeddings.%"},
    {"embeddings.norm.%", "layers.0.pre_norm.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.attn_norm.%"},
    {"decoder.layers.mixer.mix_receptance", "layers.{}.attn.x_r"},
    {"decoder.layers.mixer.mix_decay", "layers.{}.attn.x_w"},
    {"decoder.layers.mixer.mix_key", "layers.{}.attn.x_k"},
    {"decoder.layers.mixer.mix_value", "layers.{}.attn.x_v"},
    {"decoder.layers.mixer.mix_rate", "layers.{}.attn.x_a"},
    {"decoder.layers.mixer.mix_gate", "layers.{}.attn.x_g"},
    {"decoder.layers.mixer.removal", "layers.{}.attn.k_k"},
    {"decoder.layers.mixer.replacement", "layers.{}.attn.k_a"},
    {"decoder.layers.mixer.bonus", "layers.{}.attn.r_k"},
    {"decoder.layers.mixer.receptance.%", "layers.{}.attn.r_proj.%"},
    {"decoder.layers.mixer.key.%", "layers.{}.attn.k_proj.%"},
    {"decoder.layers.mixer.value.%", "layers.{}.attn.v_proj.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.attn.o_proj.%"},
    {"decoder.layers.mixer.decay_a.%", "layers.{}.attn.w_lora.lora.0.%"},
    {"decoder.layers.mixer.decay.%", "layers.{}.attn.w_lora.lora.2.%"},
    {"decoder.layers.mixer.value_share_a.%", "layers.{}.attn.v_lora.lora.0.%"},
    {"decoder.layers.mixer.value_share.%", "layers.{}.attn.v_lora.lora.2.%"},
    {"decoder.layers.mixer.rate_a.%", "layers.{}.attn.a_lora.lora.0.%"},
    {"decoder.layers.mixer.rate.%", "layers.{}.attn.a_lora.lora.2.%"},
    {"decoder.layers.mixer.gate_a.%", "layers.{}.attn.g_lora.lora.0.%"},
    {"decoder.layers.mixer.gate.%", "layers.{}.attn.g_lora.lora.2.%"},
    {"decoder.layers.mixer.norm.%", "layers.{}.attn.g_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.ffn_norm.%"},
    {"decoder.layers.mlp.mix_key", "layers.{}.ffn.x_k"},
    {"decoder.layers.mlp.up.%", "layers.{}.ffn.key.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.ffn.value.%"},
    {"decoder.final_norm.%", "norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

/// Names in GGUF, where each low-rank product is numbered and the six mixes are one tensor.
constexpr NameRule kGooseGguf[] = {
    {"layers.mlp_norm.%", "blk.{}.attn_norm_2.%"},
    {"layers.mixer.mix_receptance", "blk.{}.time_mix_lerp_fused.weight", part(0)},
    {"layers.mixer.mix_decay", "blk.{}.time_mix_lerp_fused.weight", part(1)},
    {"layers.mixer.mix_key", "blk.{}.time_mix_lerp_fused.weight", part(2)},
    {"layers.mixer.mix_value", "blk.{}.time_mix_lerp_fused.weight", part(3)},
    {"layers.mixer.mix_rate", "blk.{}.time_mix_lerp_fused.weight", part(4)},
    {"layers.mixer.mix_gate", "blk.{}.time_mix_lerp_fused.weight", part(5)},
    {"layers.mixer.removal", "blk.{}.time_mix_k_k.weight"},
    {"layers.mixer.replacement", "blk.{}.time_mix_k_a.weight"},
    {"layers.mixer.bonus", "blk.{}.time_mix_r_k.weight"},
    {"layers.mixer.receptance.%", "blk.{}.time_mix_receptance.%"},
    {"layers.mixer.key.%", "blk.{}.time_mix_key.%"},
    {"layers.mixer.value.%", "blk.{}.time_mix_value.%"},
    {"layers.mixer.out.%", "blk.{}.time_mix_output.%"},
    {"layers.mixer.decay_a.%", "blk.{}.time_mix_w1.%"},
    {"layers.mixer.decay.weight", "blk.{}.time_mix_w2.weight"},
    {"layers.mixer.decay.bias", "blk.{}.time_mix_w0.weight"},
    {"layers.mixer.value_share_a.%", "blk.{}.time_mix_v1.%"},
    {"layers.mixer.value_share.weight", "blk.{}.time_mix_v2.weight"},
    {"layers.mixer.value_share.bias", "blk.{}.time_mix_v0.weight"},
    {"layers.mixer.rate_a.%", "blk.{}.time_mix_a1.%"},
    {"layers.mixer.rate.weight", "blk.{}.time_mix_a2.weight"},
    {"layers.mixer.rate.bias", "blk.{}.time_mix_a0.weight"},
    {"layers.mixer.gate_a.%", "blk.{}.time_mix_g1.%"},
    {"layers.mixer.gate.weight", "blk.{}.time_mix_g2.weight"},
    {"layers.mixer.norm.%", "blk.{}.time_mix_ln.%"},
    {"layers.mlp.mix_key", "blk.{}.channel_mix_lerp_k.weight"},
    {"layers.mlp.up.%", "blk.{}.channel_mix_key.%"},
    {"layers.mlp.down.%", "blk.{}.channel_mix_value.%"},
};

constexpr GgufKey kGooseKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.layer_norm_epsilon", "norm_eps"},
    {"wkv.head_size", "head_dim"},
    {"attention.decay_lora_rank", "decay_low_rank_dim"},
    {"attention.iclr_lora_rank", "a_low_rank_dim"},
    {"attention.value_residual_mix_lora_rank", "v_low_rank_dim"},
    {"attention.gate_lora_rank", "gate_low_rank_dim"},
};

void finish_rwkv7(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto width = metadata.rows("blk.0.time_mix_value.weight");
  if (width) config.set_count("value_dim", *width);
}

}  // namespace

std::vector<Family> rwkv_families() {
  return {{.model_types = {"rwkv"},
           .classes = decoder_classes("Rwkv", {.float32_logits = true}),
           .reader = read_rwkv,
           .names = NameTable{{kRwkv}, {"rwkv."}, {{"head.weight", ExtraKind::tied_copy}}},
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"rwkv5"},
           .classes = either_of(decoder_classes("Rwkv", {.float32_logits = true}),
                                decoder_classes("Rwkv5", {.float32_logits = true})),
           .reader = read_rwkv5,
           .names = NameTable{{kEagle, kRwkv}, {"rwkv."}, {{"head.weight", ExtraKind::tied_copy}}},
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"rwkv7"},
           .classes = decoder_classes("RWKV7", {.float32_logits = true}),
           .reader = read_rwkv7,
           .names = NameTable{{kGoose}, {"model."}, {}},
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "rwkv7",
                              .common = kGooseKeys,
                              .flags = {{"blk.0.attn_norm.bias", "norm_bias"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_rwkv7}},
                            {kGooseGguf})}};
}

}  // namespace headroom::detail
