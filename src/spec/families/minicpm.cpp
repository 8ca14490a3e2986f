// MiniCPM: Llama with scaled embeddings, residuals and logits; optionally with experts (arXiv
// 2404.06395).
#include <cmath>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_scales(ConfigReader& config, ModelSpec& spec) {
  const double embedding = config.number_or({"scale_emb"}, 1);
  if (embedding != 1) {
    spec.embedding.scale = EmbeddingScale::fixed;
    spec.embedding.fixed_scale = embedding;
  }
  StackSpec& stack = *spec.decoder;
  const double depth = config.number_or({"scale_depth"}, 1);
  stack.residual_multiplier = depth / std::sqrt(static_cast<double>(stack.num_layers));
  const auto hidden = static_cast<double>(spec.hidden_size);
  const double base = config.number_or({"dim_model_base"}, 1);
  if (spec.head.language_model) spec.head.language_model->logit_scale = base / hidden;
}

void read_minicpm(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, {});
  read_scales(config, spec);
  StackSpec& stack = *spec.decoder;
  if (config.count_or({"num_experts"}, 0) == 0) return;
  ExpertsSpec experts = read_experts(config, {{"num_experts"}, 0, 0});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.normalise = true;
  stack.ffn.experts = experts;
}

}  // namespace

std::vector<Family> minicpm_families() {
  return {{.model_types = {"minicpm"},
           .classes = decoder_classes("MiniCPM", {.tied = true, .float32_logits = true}),
           .reader = read_minicpm,
           .names = llama_names({mixtral_expert_rules(), routed_expert_rules()}),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
