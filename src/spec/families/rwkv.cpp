// RWKV-4: time mixing by a decaying sum of values and channel mixing, each with the position before
// (arXiv 2305.13048; transformers, models/rwkv).
#include "../common_keys.h"
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

}  // namespace

std::vector<Family> rwkv_families() {
  return {{.model_types = {"rwkv"},
           .classes = decoder_classes("Rwkv", {.float32_logits = true}),
           .reader = read_rwkv,
           .names = NameTable{{kRwkv}, {"rwkv."}, {{"head.weight", ExtraKind::tied_copy}}},
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
