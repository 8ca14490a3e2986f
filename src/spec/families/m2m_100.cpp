// M2M-100 and NLLB: BART's layers with norms before each part and sinusoidal positions (arXiv
// 2010.11125, 2207.04672). NLLB-MoE has experts in some of both stacks' layers (transformers,
// models/nllb_moe).
#include "../family.h"
#include "../sparse_stacks.h"
#include "bart.h"

namespace headroom::detail {
namespace {

void read_m2m_100(ConfigReader& config, ModelSpec& spec) {
  EncoderDecoderFamily family;
  family.placement = NormPlacement::pre;
  // Positions start after the id of the padding token.
  family.positions_offset = config.position_after_padding();
  family.positions = PositionKind::sinusoidal;
  family.table = PositionTable::tensor2tensor;
  family.activation = ActivationKind::relu;
  read_encoder_decoder(config, spec, family);
  spec.position.skips_padding = true;
}

/// Experts of the two best scores, whose weights are divided by their sum. The class multiplies
/// their outputs by the share that its dropout of whole tokens keeps in training.
ExpertsSpec read_nllb_experts(ConfigReader& config) {
  constexpr double kDropped = 0.2;
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class({"num_experts"}, 128);
  experts.num_experts_per_tok = 2;
  experts.normalise = true;
  experts.scaling_factor = 1 - config.probability_or({"moe_token_dropout"}, kDropped);
  experts.router_bias = config.flag_or({"router_bias"}, false);
  experts.bias = true;
  return experts;
}

/// The layers with experts: every `key`-th one; none if it is 0.
std::vector<bool> read_every_sparse_step(ConfigReader& config, std::string_view key,
                                         std::int64_t num_layers) {
  constexpr std::int64_t kStep = 4;
  const std::int64_t step = config.count_or({key}, kStep);
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    sparse.push_back(step > 0 && (layer + 1) % step == 0);
  }
  return sparse;
}

/// Experts take all tokens of a batch where the fraction is 1. Below it they drop some, and a
/// negative one stands for `expert_capacity` tokens.
void read_capacity(ConfigReader& config, ModelSpec& spec) {
  const double fraction = config.number_or({"moe_eval_capacity_token_fraction"}, 1);
  if (fraction >= 1) return;
  spec.assumptions.emplace_back("experts take all of their tokens, also beyond their capacity");
  spec.not_run = "experts that drop tokens beyond their capacity have no kernel yet";
}

void read_nllb_moe(ConfigReader& config, ModelSpec& spec) {
  read_m2m_100(config, spec);
  if (!config.has("scale_embedding")) spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  for (StackSpec* const stack : {&*spec.encoder, &*spec.decoder}) {
    stack->dropout.ffn_output = stack->dropout.ffn_activation;
  }
  const ExpertsSpec experts = read_nllb_experts(config);
  set_sparse_layers(*spec.encoder,
                    read_every_sparse_step(config, "encoder_sparse_step", spec.encoder->num_layers),
                    experts);
  set_sparse_layers(*spec.decoder,
                    read_every_sparse_step(config, "decoder_sparse_step", spec.decoder->num_layers),
                    experts);
  require_experts_in_both(config, spec, "decoder_sparse_step");
  read_capacity(config, spec);
  config.expect_text("second_expert_policy", "all");
  // Of training, and of experts without capacity for all tokens.
  config.ignore({"expert_capacity", "normalize_router_prob_before_dropping",
                 "batch_prioritized_routing", "router_ignore_padding_tokens", "router_dtype",
                 "router_z_loss_coef", "router_aux_loss_coef", "output_router_logits"});
}

constexpr NameRule kNllbMoe[] = {
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.ff_layer_norm.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.ffn.fc1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.ffn.fc2.%"},
    {"encoder.layers.mlp.router.%", "encoder.layers.{}.ffn.router.classifier.%"},
    {"encoder.layers.mlp.experts.up.%", "encoder.layers.{}.ffn.experts.expert_{e}.fc1.%"},
    {"encoder.layers.mlp.experts.down.%", "encoder.layers.{}.ffn.experts.expert_{e}.fc2.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.ff_layer_norm.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.ffn.fc1.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.ffn.fc2.%"},
    {"decoder.layers.mlp.router.%", "decoder.layers.{}.ffn.router.classifier.%"},
    {"decoder.layers.mlp.experts.up.%", "decoder.layers.{}.ffn.experts.expert_{e}.fc1.%"},
    {"decoder.layers.mlp.experts.down.%", "decoder.layers.{}.ffn.experts.expert_{e}.fc2.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.cross_attention.q_proj.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.cross_attention.k_proj.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.cross_attention.v_proj.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.cross_attention.out_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.cross_attention_layer_norm.%"},
};

/// Its classes run both stacks.
ModelClasses nllb_moe_classes() {
  ModelClasses classes =
      encoder_decoder_classes("NllbMoe", "NllbMoeForConditionalGeneration", LogitsBias::none);
  std::erase_if(classes.list, [](const ModelClass& candidate) {
    return candidate.name != "NllbMoeForConditionalGeneration" && candidate.name != "NllbMoeModel";
  });
  return classes;
}

}  // namespace

std::vector<Family> m2m_100_families() {
  constexpr std::string_view kNotInLlamaCpp = "llama.cpp does not support this architecture";
  return {{.model_types = {"m2m_100"},
           .classes = encoder_decoder_classes("M2M100", "M2M100ForConditionalGeneration",
                                              LogitsBias::none),
           .reader = read_m2m_100,
           .names = bart_names(),
           .gguf = None(kNotInLlamaCpp)},
          {.model_types = {"nllb-moe"},
           .classes = nllb_moe_classes(),
           .reader = read_nllb_moe,
           .names = bart_names({kNllbMoe}),
           .gguf = None(kNotInLlamaCpp)}};
}

}  // namespace headroom::detail
