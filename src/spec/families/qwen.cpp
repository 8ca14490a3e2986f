// Qwen2 and Qwen3, dense and MoE (arXiv 2407.10671, 2505.09388).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Qwen1.5, Qwen2 and Qwen2.5: Llama with biases on Q, K and V (arXiv 2407.10671).
void read_qwen2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.bias = BiasRule::query_key_value;
  read_decoder(config, spec, defaults);
  read_qwen_windows(config, *spec.decoder);
  config.ignore({"attention_bias", "qkv_bias", "rope_interleaved"});  // fixed by the class
}

/// Qwen3: Llama with a norm on every query and key head (arXiv 2505.09388).
void read_qwen3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.head_dim = 128;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  read_qwen_windows(config, stack);
}

/// A model of an MoE class without experts: every layer has the dense network.
bool is_dense(ConfigReader& config) {
  if (config.count_or({"num_experts", "num_local_experts"}, 1) > 0) return false;
  config.ignore({"num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
                 "decoder_sparse_step", "mlp_only_layers", "shared_expert_intermediate_size"});
  return true;
}

ExpertsSpec read_qwen_experts(ConfigReader& config, const ExpertKeys& keys,
                              std::int64_t size_when_absent) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, size_when_absent);
  experts.normalise = config.flag_or({"norm_topk_prob"}, false);
  return experts;
}

void read_qwen2_moe(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kSharedWhenAbsent = 5632;
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.qkv_bias = config.flag_or({"qkv_bias"}, true);
  read_qwen_windows(config, stack);
  if (is_dense(config)) return;
  ExpertsSpec experts =
      read_qwen_experts(config, {{"num_experts", "num_local_experts"}, 60, 4}, 1408);
  experts.shared_intermediate_size =
      config.size_or({"shared_expert_intermediate_size"}, kSharedWhenAbsent);
  experts.shared_gate = true;
  spread_qwen_experts(config, stack, experts);
}

void read_qwen3_moe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.num_key_value_heads = 4;
  defaults.head_size = HeadSizeRule::rounded_down;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  if (!is_dense(config)) {
    spread_qwen_experts(
        config, stack,
        read_qwen_experts(config, {{"num_experts", "num_local_experts"}, 128, 8}, 768));
  }
  const bool windowed = config.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(config, 4096);
  if (windowed) stack.self_attention.window = window;
  // The class ignores these.
  config.ignore({"max_window_layers", "layer_types", "shared_expert_intermediate_size", "qkv_bias",
                 "use_qk_norm"});
}

/// Qwen3-MoE that always normalises the experts' weights.
void read_qwen3_vl_moe(ConfigReader& config, ModelSpec& spec) {
  read_qwen3_moe(config, spec);
  StackSpec& stack = *spec.decoder;
  const auto normalise = [](FfnSpec& ffn) {
    if (ffn.experts) ffn.experts->normalise = true;
  };
  normalise(stack.ffn);
  for (LayerVariant& variant : stack.variants) normalise(variant.ffn);
}

/// Scores of a reward model: two layers with a ReLU between them. Source: modeling_qwen2_rm.py of
/// Qwen/Qwen2.5-Math-RM-72B and Qwen/Qwen2.5-Math-PRM-7B (arXiv 2409.12122, 2501.07301).
HeadSpec two_layer_scores(ClassifierSpec scores) {
  scores.dense = ActivationKind::relu;
  return classifier_head(scores);
}

/// Scores an answer by its last token that is no padding.
HeadSpec outcome_reward_head(ConfigReader& config) {
  ClassifierSpec score;
  score.input = ClassifierInput::last_token;
  score.num_labels = 1;
  score.token_id = read_token_id(config, "pad_token_id");
  return two_layer_scores(score);
}

/// Two scores of every token, of which those at the end of a step tell whether it is right.
HeadSpec process_reward_head(ConfigReader& /*config*/) {
  ClassifierSpec scores;
  scores.input = ClassifierInput::every_token;
  scores.num_labels = 2;
  return two_layer_scores(scores);
}

ModelClasses qwen2_classes() {
  return either_of(llama_classes("Qwen2"), {{{"Qwen2ForRewardModel", outcome_reward_head},
                                             {"Qwen2ForProcessRewardModel", process_reward_head}}});
}

constexpr NameRule kRewardHead[] = {
    {"head.classifier.dense.%", "score.0.%"},
    {"head.classifier.%", "score.2.%"},
};

constexpr NameRule kSharedExpert[] = {
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_expert.down_proj.%"},
    {"decoder.layers.mlp.shared_expert_gate.%", "layers.{}.mlp.shared_expert_gate.%"},
};

// Qwen3-VL stores experts as [experts, in, out].
constexpr NameRule kTransposedExperts[] = {
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(transposed(part(0)))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(transposed(part(1)))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts(transposed())},
};

NameTable qwen3_vl_moe_names() {
  return llama_names({kTransposedExperts, routed_expert_rules(), query_key_norm_rules()});
}

NameTable qwen_moe_names() {
  return llama_names({routed_expert_rules(), kSharedExpert, query_key_norm_rules()});
}

}  // namespace

std::vector<Family> qwen_families() {
  return {
      {.model_types = {"qwen2"},
       .classes = qwen2_classes(),
       .reader = read_qwen2,
       .names = llama_names({kRewardHead}),
       .gguf = GgufForm(GgufConversion::none, {{.name = "qwen2", .common = gguf_rms_norm_keys()}})},
      {.model_types = {"qwen3"},
       .classes = llama_classes("Qwen3"),
       .reader = read_qwen3,
       .names = llama_names({query_key_norm_rules()}),
       .gguf = GgufForm(GgufConversion::none, {{.name = "qwen3",
                                                .common = gguf_rms_norm_keys(),
                                                .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                                                .head_dim = GgufHeadDim::always}})},
      // Inside the multimodal models of qwen_vl.cpp and qwen_omni.cpp.
      {.model_types = {"qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text"},
       .classes = either_of(llama_classes("Qwen2VLText"), llama_classes("Qwen2_5_VLText")),
       .reader = read_qwen2,
       .names = llama_names(),
       .gguf =
           GgufForm(GgufConversion::none, {{.name = "qwen2vl", .common = gguf_rms_norm_keys()}})},
      {.model_types = {"qwen3_vl_text", "qwen3_asr_text"},
       .classes = llama_classes("Qwen3VLText"),
       .reader = read_qwen3,
       .names = llama_names({query_key_norm_rules()}),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "qwen3vl", .common = gguf_rms_norm_keys(), .head_dim = GgufHeadDim::always}})},
      {.model_types = {"qwen3_vl_moe_text", "qwen3_omni_moe_text"},
       .classes = llama_classes("Qwen3VLMoeText"),
       .reader = read_qwen3_vl_moe,
       .names = qwen3_vl_moe_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "qwen3vlmoe",
                          .common = gguf_expert_keys(),
                          .own = {{"feed_forward_length", "intermediate_size"},
                                  {"expert_count", "num_experts"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"}},
                          .head_dim = GgufHeadDim::always}})},
      {.model_types = {"qwen2_moe"},
       .classes = llama_classes("Qwen2Moe"),
       .reader = read_qwen2_moe,
       .names = qwen_moe_names(),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "qwen2moe",
             .common = gguf_expert_keys(),
             .own = {{"feed_forward_length", "intermediate_size"},
                     {"expert_count", "num_experts"},
                     {"expert_feed_forward_length", "moe_intermediate_size"},
                     {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}}}})},
      {.model_types = {"qwen3_moe"},
       .classes = llama_classes("Qwen3Moe"),
       .reader = read_qwen3_moe,
       .names = qwen_moe_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "qwen3moe",
                          .common = gguf_expert_keys(),
                          .own = {{"feed_forward_length", "intermediate_size"},
                                  {"expert_count", "num_experts"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"}},
                          .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                          .constants = {{"norm_topk_prob", "true"}},
                          .head_dim = GgufHeadDim::always}})}};
}  // namespace headroom::detail

}  // namespace headroom::detail
