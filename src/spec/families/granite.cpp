// Granite 3: Llama with multipliers of embedding, scores, residuals and logits; dense and routed
// (IBM, Granite 3.0 language models; arXiv 2408.13359).
#include "../decoder.h"

namespace headroom::detail {
namespace {

void read_granite_like(ConfigReader& config, ModelSpec& spec, const std::string& prefix) {
  DecoderFamily family;
  family.prefix = prefix;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.scale = AttentionScale::fixed;
  stack.self_attention.fixed_scale = config.number_or({"attention_multiplier"}, 1);
  stack.residual_multiplier = config.number_or({"residual_multiplier"}, 1);
  const double embedding = config.number_or({"embedding_multiplier"}, 1);
  if (embedding != 1) {
    spec.embedding.scale = EmbeddingScale::fixed;
    spec.embedding.fixed_scale = embedding;
  }
  const double logits = config.number_or({"logits_scaling"}, 1);
  if (spec.head.language_model) spec.head.language_model->logit_scale = 1 / logits;
}

}  // namespace

void read_granite(ConfigReader& config, ModelSpec& spec) {
  read_granite_like(config, spec, "Granite");
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
}

void read_granitemoe(ConfigReader& config, ModelSpec& spec) {
  read_granite_like(config, spec, "GraniteMoe");
  StackSpec& stack = *spec.decoder;
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 8, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::softmax_of_chosen;
  stack.ffn.experts = experts;
}

}  // namespace headroom::detail
