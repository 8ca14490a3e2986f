// MiniCPM: Llama with scaled embeddings, residuals and logits; optionally with experts (arXiv
// 2404.06395).
#include <cmath>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Factors of a class; those that a config sets to null change nothing.
struct Scales {
  double embedding = 1;
  double depth = 1;
  double model_base = 1;
};

void read_scales(ConfigReader& config, ModelSpec& spec, const Scales& absent) {
  const double embedding = config.number_or({"scale_emb"}, absent.embedding);
  if (embedding != 1) {
    spec.embedding.scale = EmbeddingScale::fixed;
    spec.embedding.fixed_scale = embedding;
  }
  StackSpec& stack = *spec.decoder;
  const double root = std::sqrt(static_cast<double>(stack.num_layers));
  const double depth =
      config.number_or({"scale_depth"}, config.is_null("scale_depth") ? root : absent.depth);
  stack.residual_multiplier = depth / root;
  const auto hidden = static_cast<double>(spec.hidden_size);
  const double base = config.number_or(
      {"dim_model_base"}, config.is_null("dim_model_base") ? hidden : absent.model_base);
  if (spec.head.language_model) spec.head.language_model->logit_scale = base / hidden;
}

void read_minicpm(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, {});
  read_scales(config, spec, {});
  config.ignore({"mup_denominator"});  // scales the learning rate
  StackSpec& stack = *spec.decoder;
  if (config.count_or({"num_experts"}, 0) == 0) return;
  ExpertsSpec experts = read_experts(config, {{"num_experts"}, 0, 0});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.normalise = true;
  stack.ffn.experts = experts;
}

/// MiniCPM3: the latent attention of DeepSeek-V2 with RoPE on halves, and dense networks.
void read_minicpm3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(32768);
  defaults.rope.layout = RopeLayout::half_split;
  defaults.norm_eps = 1e-5;
  // The dimensions that RoPE turns, of which the class has 32 (MiniCPM3Config, transformers).
  const std::int64_t rotary = config.size_or({"qk_rope_head_dim"}, 32);
  defaults.head_dim = rotary;
  read_decoder(config, spec, defaults);
  const std::int64_t head_dim = spec.hidden_size / spec.decoder->self_attention.num_attention_heads;
  read_latent_attention(config, spec, {768, 64, head_dim, rotary});
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
  read_scales(config, spec, {12, 1.4, 256});
}

/// GGUF holds the factors that the config's sizes give.
void finish_minicpm(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto layers = static_cast<double>(metadata.blocks());
  const auto residual = metadata.number("residual_scale");
  const auto width = metadata.count("embedding_length").value_or(0);
  const auto logits = metadata.number("logit_scale");
  if (residual) config.set_number("scale_depth", *residual * std::sqrt(layers));
  if (logits) config.set_number("dim_model_base", static_cast<double>(width) / *logits);
}

/// The class's own factors, which llama.cpp fixes, are not stored; nor is the size of a value head.
void finish_minicpm3(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::int64_t heads = metadata.count("attention.head_count").value_or(0);
  const std::int64_t key = metadata.count("attention.key_length").value_or(0);
  const std::int64_t rotary = metadata.count("rope.dimension_count").value_or(0);
  if (heads <= 0) metadata.fail("attention.head_count", "is missing");
  if (key <= rotary) metadata.fail("attention.key_length", "does not exceed the rotated part");
  const auto rows = metadata.rows("blk.0.attn_kv_b.weight");
  config.set_count("qk_nope_head_dim", key - rotary);
  if (rows) config.set_count("v_head_dim", *rows / heads - (key - rotary));
}

}  // namespace

std::vector<Family> minicpm_families() {
  return {{.model_types = {"minicpm"},
           .classes = decoder_classes("MiniCPM", {.tied = true, .float32_logits = true}),
           .reader = read_minicpm,
           .names = llama_names({mixtral_expert_rules(), routed_expert_rules()}),
           .gguf = GgufForm(GgufConversion::interleaved_heads,
                            {{.name = "minicpm",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"embedding_scale", "scale_emb"},
                                      {"expert_count", "num_experts"},
                                      {"expert_used_count", "num_experts_per_tok"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_minicpm}})},
          {.model_types = {"minicpm3"},
           .classes = decoder_classes("MiniCPM3", {.tied = true, .float32_logits = true}),
           .reader = read_minicpm3,
           .names = deepseek_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "minicpm3",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"attention.q_lora_rank", "q_lora_rank"},
                                      {"attention.kv_lora_rank", "kv_lora_rank"},
                                      {"rope.dimension_count", "qk_rope_head_dim"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_minicpm3}})}};
}

}  // namespace headroom::detail
