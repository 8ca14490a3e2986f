// Phi-3 and Phi-4: Llama without biases, its projections stored together, LongRoPE
// (arXiv 2404.14219).
#include "../decoder.h"

namespace headroom::detail {

void read_phi3(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Phi3";
  family.max_position_embeddings = 4096;
  family.norm_eps = 1e-5;
  family.rope.original_max_position_embeddings = 4096;
  family.bias = BiasRule::none;
  read_decoder(config, spec, family);
  spec.decoder->self_attention.window = read_window(config, 0);
  const double dropout = config.probability_or({"resid_pdrop"}, 0);
  spec.decoder->dropout.attention_output = dropout;
  spec.decoder->dropout.ffn_output = dropout;
  // Of no effect: the class drops nothing of the embedding, and has no biases.
  config.ignore({"embd_pdrop", "attention_bias", "mlp_bias", "lm_head_bias"});
}

void read_phimoe(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  // The vendor's class, then Transformers'.
  const std::vector<std::string> names = config.texts("architectures");
  const bool renamed = !names.empty() && names.front().starts_with("Phimoe");
  family.prefix = renamed ? "Phimoe" : "PhiMoE";
  family.num_key_value_heads = 8;
  family.max_position_embeddings = 131072;
  family.norm = {NormKind::layer_norm, true};
  family.norm_eps = 1e-5;
  family.rope.theta = 1e6;
  const double jitter = config.number_or({"router_jitter_noise"}, 0.01);
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  if (spec.head.language_model) {
    spec.head.language_model->bias = config.flag_or({"lm_head_bias"}, false);
  }
  stack.self_attention.window = read_window(config, 0);
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 16, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::sparse_mixer;
  experts.jitter_eps = jitter;
  stack.ffn.experts = experts;
  config.ignore({"input_jitter_noise", "hidden_dropout", "lm_head_bias"});
}

}  // namespace headroom::detail
