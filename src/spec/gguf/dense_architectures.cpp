// Architectures with one feed-forward network a layer.
#include <array>

#include "gguf_architectures.h"

namespace headroom::detail {
namespace {

using nlohmann::json;

constexpr GgufKey kLlama[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
};
/// The same with layer norms, whose epsilon families call by several names.
constexpr GgufKey kLayerNormDecoder[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"rope.freq_base", "rope_theta"},
};
constexpr GgufKey kLayerNormEps[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"}};
constexpr GgufKey kLayerNormEpsAndLogitScale[] = {
    {"attention.layer_norm_epsilon", "layer_norm_eps"}, {"logit_scale", "logit_scale"}};
constexpr GgufKey kCohere2[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                {"logit_scale", "logit_scale"},
                                {"attention.sliding_window", "sliding_window"}};
constexpr GgufKey kStableLm[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                 {"use_parallel_residual", "use_parallel_residual"}};
constexpr GgufKey kNormEpsilon[] = {{"attention.layer_norm_epsilon", "norm_epsilon"}};
constexpr GgufKey kSlidingWindow[] = {{"attention.sliding_window", "sliding_window"}};
constexpr GgufKey kGemma2[] = {{"attention.sliding_window", "sliding_window"},
                               {"attn_logit_softcapping", "attn_logit_softcapping"},
                               {"final_logit_softcapping", "final_logit_softcapping"}};
constexpr GgufKey kGranite[] = {{"logit_scale", "logits_scaling"},
                                {"embedding_scale", "embedding_multiplier"},
                                {"residual_scale", "residual_multiplier"},
                                {"attention.scale", "attention_multiplier"}};
constexpr GgufKey kOlmo[] = {{"attention.clamp_kqv", "clip_qkv"}};
constexpr GgufKey kNeoX[] = {{"context_length", "max_position_embeddings"},
                             {"embedding_length", "hidden_size"},
                             {"block_count", "num_hidden_layers"},
                             {"feed_forward_length", "intermediate_size"},
                             {"attention.head_count", "num_attention_heads"},
                             {"attention.layer_norm_epsilon", "layer_norm_eps"},
                             {"use_parallel_residual", "use_parallel_residual"},
                             {"rope.freq_base", "rotary_emb_base"}};
constexpr GgufKey kGpt2[] = {
    {"context_length", "n_positions"},  {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},         {"attention.head_count", "n_head"},
    {"feed_forward_length", "n_inner"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr GgufKey kBloom[] = {{"embedding_length", "hidden_size"},
                              {"block_count", "n_layer"},
                              {"attention.head_count", "n_head"},
                              {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr GgufKey kMpt[] = {{"context_length", "max_seq_len"},
                            {"embedding_length", "d_model"},
                            {"block_count", "n_layers"},
                            {"attention.head_count", "n_heads"},
                            {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr GgufKey kFalcon[] = {{"embedding_length", "hidden_size"},
                               {"block_count", "num_hidden_layers"},
                               {"attention.head_count", "num_attention_heads"},
                               {"feed_forward_length", "ffn_hidden_size"},
                               {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr GgufKey kT5[] = {{"embedding_length", "d_model"},
                           {"block_count", "num_layers"},
                           {"decoder_block_count", "num_decoder_layers"},
                           {"feed_forward_length", "d_ff"},
                           {"attention.head_count", "num_heads"},
                           {"attention.key_length", "d_kv"},
                           {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
                           {"attention.relative_buckets_count", "relative_attention_num_buckets"}};

constexpr GgufFlag kLlamaBiases[] = {{"blk.0.attn_output.bias", "attention_bias"},
                                     {"blk.0.ffn_down.bias", "mlp_bias"}};
constexpr GgufFlag kAttentionBias[] = {{"blk.0.attn_q.bias", "attention_bias"}};
constexpr GgufFlag kStableLmFlags[] = {{"blk.0.attn_q.bias", "use_qkv_bias"},
                                       {"blk.0.attn_q_norm.weight", "qk_layernorm"}};
constexpr GgufFlag kCohereFlags[] = {{"blk.0.attn_q_norm.weight", "use_qk_norm"}};
constexpr GgufFlag kFalconFlags[] = {{"blk.0.attn_norm_2.weight", "new_decoder_architecture"},
                                     {"blk.0.attn_qkv.bias", "bias"}};

constexpr GgufConstant kGemma[] = {{"hidden_act", R"("gelu_pytorch_tanh")"}};
constexpr GgufConstant kGemma2Activation[] = {{"hidden_activation", R"("gelu_pytorch_tanh")"}};

/// The part of a head that turns, as a share of it.
double rotary_share(const GgufMetadataReader& metadata) {
  const auto width = metadata.count("embedding_length").value_or(0);
  const auto heads = metadata.count("attention.head_count").value_or(0);
  const auto usual = heads > 0 ? width / heads : 0;
  const auto head_dim = metadata.count("attention.key_length").value_or(usual);
  const auto turning = metadata.count("rope.dimension_count").value_or(head_dim);
  if (head_dim <= 0 || turning > head_dim) {
    metadata.fail("rope.dimension_count", "is more than a head has");
  }
  return static_cast<double>(turning) / static_cast<double>(head_dim);
}

void finish_partial_rotary(const GgufMetadataReader& metadata, json& config) {
  config["partial_rotary_factor"] = rotary_share(metadata);
}

void finish_neox(const GgufMetadataReader& metadata, json& config) {
  config["rotary_pct"] = rotary_share(metadata);
}

/// Layers that see the whole context among those with a window: given one by one, or every nth.
void finish_windows(const GgufMetadataReader& metadata, json& config) {
  const auto windowed = metadata.flags_by_layer("attention.sliding_window_pattern");
  if (!windowed) return;
  config["layer_types"] = json::array();
  for (const bool is_windowed : *windowed) {
    config["layer_types"].push_back(is_windowed ? "sliding_attention" : "full_attention");
  }
}

void finish_falcon(const GgufMetadataReader& metadata, json& config) {
  const auto heads = metadata.count("attention.head_count_kv").value_or(1);
  config["parallel_attn"] = true;
  config["multi_query"] = heads == 1;
  if (config.at("new_decoder_architecture") == true) config["num_kv_heads"] = heads;
}

void finish_t5(const GgufMetadataReader& metadata, json& config) {
  const bool gated = metadata.has_tensor("enc.blk.0.ffn_gate.weight");
  config["feed_forward_proj"] = gated ? "gated-gelu" : "relu";
}

void finish_mpt(const GgufMetadataReader& metadata, json& config) {
  json& attention = config["attn_config"] = json::object();
  attention["alibi"] = true;
  if (auto bias = metadata.value("attention.max_alibi_bias")) attention["alibi_bias_max"] = *bias;
  if (auto clip = metadata.value("attention.clamp_kqv")) attention["clip_qkv"] = *clip;
}

using enum GgufHeadDim;

constexpr std::array kDense{
    GgufArchitecture{.name = "llama",
                     .model_type = "llama",
                     .architecture = "LlamaForCausalLM",
                     .common = kLlama,
                     .flags = kLlamaBiases,
                     .finish = finish_rope_scaling},
    GgufArchitecture{.name = "qwen2",
                     .model_type = "qwen2",
                     .architecture = "Qwen2ForCausalLM",
                     .common = kLlama},
    GgufArchitecture{.name = "qwen3",
                     .model_type = "qwen3",
                     .architecture = "Qwen3ForCausalLM",
                     .common = kLlama,
                     .flags = kAttentionBias,
                     .head_dim = always},
    GgufArchitecture{.name = "phi3",
                     .model_type = "phi3",
                     .architecture = "Phi3ForCausalLM",
                     .common = kLlama,
                     .own = kSlidingWindow,
                     .head_dim = never,
                     .finish = finish_partial_rotary},
    GgufArchitecture{.name = "gemma",
                     .model_type = "gemma",
                     .architecture = "GemmaForCausalLM",
                     .common = kLlama,
                     .constants = kGemma,
                     .tie = GgufTie::always,
                     .head_dim = always},
    GgufArchitecture{.name = "gemma2",
                     .model_type = "gemma2",
                     .architecture = "Gemma2ForCausalLM",
                     .common = kLlama,
                     .own = kGemma2,
                     .constants = kGemma2Activation,
                     .tie = GgufTie::always,
                     .head_dim = always},
    GgufArchitecture{.name = "gemma3",
                     .model_type = "gemma3_text",
                     .architecture = "Gemma3ForCausalLM",
                     .common = kLlama,
                     .own = kSlidingWindow,
                     .constants = kGemma2Activation,
                     .tie = GgufTie::always,
                     .head_dim = always,
                     .finish = finish_windows},
    GgufArchitecture{.name = "gpt2",
                     .model_type = "gpt2",
                     .architecture = "GPT2LMHeadModel",
                     .common = kGpt2,
                     .tie = GgufTie::always,
                     .head_dim = never},
    GgufArchitecture{.name = "gptneox",
                     .model_type = "gpt_neox",
                     .architecture = "GPTNeoXForCausalLM",
                     .common = kNeoX,
                     .head_dim = never,
                     .finish = finish_neox},
    GgufArchitecture{.name = "phi2",
                     .model_type = "phi",
                     .architecture = "PhiForCausalLM",
                     .common = kLayerNormDecoder,
                     .own = kLayerNormEps,
                     .head_dim = never,
                     .finish = finish_partial_rotary},
    GgufArchitecture{.name = "starcoder2",
                     .model_type = "starcoder2",
                     .architecture = "Starcoder2ForCausalLM",
                     .common = kLayerNormDecoder,
                     .own = kNormEpsilon,
                     .head_dim = never},
    GgufArchitecture{.name = "stablelm",
                     .model_type = "stablelm",
                     .architecture = "StableLmForCausalLM",
                     .common = kLayerNormDecoder,
                     .own = kStableLm,
                     .flags = kStableLmFlags,
                     .head_dim = never,
                     .finish = finish_partial_rotary},
    GgufArchitecture{.name = "falcon",
                     .model_type = "falcon",
                     .architecture = "FalconForCausalLM",
                     .common = kFalcon,
                     .flags = kFalconFlags,
                     .head_dim = never,
                     .finish = finish_falcon},
    GgufArchitecture{.name = "bloom",
                     .model_type = "bloom",
                     .architecture = "BloomForCausalLM",
                     .common = kBloom,
                     .tie = GgufTie::always,
                     .head_dim = never},
    GgufArchitecture{.name = "mpt",
                     .model_type = "mpt",
                     .architecture = "MptForCausalLM",
                     .common = kMpt,
                     .tie = GgufTie::always,
                     .head_dim = never,
                     .finish = finish_mpt},
    GgufArchitecture{.name = "olmo",
                     .model_type = "olmo",
                     .architecture = "OlmoForCausalLM",
                     .common = kLayerNormDecoder,
                     .own = kOlmo,
                     .head_dim = never},
    GgufArchitecture{.name = "olmo2",
                     .model_type = "olmo2",
                     .architecture = "Olmo2ForCausalLM",
                     .common = kLlama,
                     .head_dim = never},
    GgufArchitecture{.name = "command-r",
                     .model_type = "cohere",
                     .architecture = "CohereForCausalLM",
                     .common = kLayerNormDecoder,
                     .own = kLayerNormEpsAndLogitScale,
                     .flags = kCohereFlags,
                     .tie = GgufTie::always,
                     .head_dim = never},
    GgufArchitecture{.name = "cohere2",
                     .model_type = "cohere2",
                     .architecture = "Cohere2ForCausalLM",
                     .common = kLayerNormDecoder,
                     .own = kCohere2,
                     .tie = GgufTie::always,
                     .finish = finish_windows},
    GgufArchitecture{.name = "granite",
                     .model_type = "granite",
                     .architecture = "GraniteForCausalLM",
                     .common = kLlama,
                     .own = kGranite,
                     .flags = kLlamaBiases,
                     .head_dim = never},
    GgufArchitecture{.name = "smollm3",
                     .model_type = "smollm3",
                     .architecture = "SmolLM3ForCausalLM",
                     .common = kLlama,
                     .flags = kLlamaBiases},
    GgufArchitecture{.name = "t5",
                     .model_type = "t5",
                     .architecture = "T5ForConditionalGeneration",
                     .common = kT5,
                     .head_dim = never,
                     .finish = finish_t5},
};

}  // namespace

std::span<const GgufArchitecture> gguf_dense_architectures() { return kDense; }

void finish_rope_scaling(const GgufMetadataReader& metadata, json& config) {
  const auto type = metadata.value("rope.scaling.type");
  if (!type || *type == "none") return;
  json& scaling = config["rope_scaling"] = {{"rope_type", *type}};
  if (auto factor = metadata.value("rope.scaling.factor")) scaling["factor"] = *factor;
  if (auto length = metadata.value("rope.scaling.original_context_length")) {
    scaling["original_max_position_embeddings"] = *length;
  }
}

}  // namespace headroom::detail
