// ESM-1b and ESM-2: pre-norm encoders of proteins (doi 10.1126/science.ade2574). Embeddings of
// masked tokens are zero, and the others are scaled as if training's share were masked.
#include "../bert.h"
#include "../common_keys.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_positions(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t padding = config.count_or({"pad_token_id"}, 1);
  spec.position.kind = config.choice_or<PositionKind>(
      {"position_embedding_type"},
      {{"absolute", PositionKind::learned}, {"rotary", PositionKind::rotary}},
      PositionKind::learned);
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 1026);
  const double theta = config.number_or({"rope_theta"}, 10000);
  if (spec.position.kind == PositionKind::rotary) {
    spec.position.rope.theta = theta;
    spec.position.max_position_embeddings = 0;  // rotates at any length
    return;
  }
  spec.position.offset = config.sum("pad_token_id", padding, 1);
  spec.position.skips_padding = true;
}

void read_token_dropout(ConfigReader& config, ModelSpec& spec) {
  const std::optional<std::int64_t> mask = config.optional_size({"mask_token_id"});
  if (!config.flag_or({"token_dropout"}, false)) return;
  if (!mask) config.fail("mask_token_id", "is missing", "add the id of the mask token");
  spec.embedding.scale = EmbeddingScale::token_dropout;
  spec.embedding.mask_token_id = *mask;
}

void read_esm(ConfigReader& config, ModelSpec& spec) {
  config.expect_flag("is_folding_model", false);
  config.expect_text("hidden_act", "gelu");  // the class runs GELU whatever this says
  config.ignore({"esmfold_config", "vocab_list", "pooler_act"});
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  read_positions(config, spec);
  read_token_dropout(config, spec);

  StackSpec stack = read_biased_layers(config, spec.hidden_size, ActivationKind::gelu);
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-12)};
  stack.final_norm = stack.norm;
  if (config.flag_or({"emb_layer_norm_before"}, false)) spec.embedding.norm = stack.norm;
  const double hidden_dropout = config.probability_or({"hidden_dropout_prob"}, 0.1);
  stack.dropout.attention_output = hidden_dropout;
  stack.dropout.ffn_output = hidden_dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_probs_dropout_prob"}, 0.1);
  if (spec.head.language_model) spec.head.language_model->transform_norm = stack.norm;
  // Predicts contacts from all attention maps; every class has it, no forward pass runs it.
  const std::int64_t maps = product(config, "num_hidden_layers", stack.num_layers,
                                    stack.self_attention.num_attention_heads);
  for (const auto& [name, shape] : {std::pair{"weight", std::vector{std::int64_t{1}, maps}},
                                    std::pair{"bias", std::vector{std::int64_t{1}}}}) {
    spec.counted_only.push_back({std::string("head.contacts.") + name, shape, WeightRole::head, 1,
                                 ModelPart::text, CountedUse::loaded});
  }
  spec.encoder = stack;
}

constexpr NameRule kEsm[] = {
    {"embeddings.norm.%", "embeddings.layer_norm.%"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.LayerNorm.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.LayerNorm.%"},
    // Some versions of transformers save these norms under TensorFlow's names.
    {"encoder.layers.attention_norm.weight", "encoder.layer.{}.attention.LayerNorm.gamma"},
    {"encoder.layers.attention_norm.bias", "encoder.layer.{}.attention.LayerNorm.beta"},
    {"encoder.layers.mlp_norm.weight", "encoder.layer.{}.LayerNorm.gamma"},
    {"encoder.layers.mlp_norm.bias", "encoder.layer.{}.LayerNorm.beta"},
    {"encoder.final_norm.%", "encoder.emb_layer_norm_after.%"},
    {"head.contacts.%", "contact_head.regression.%"},
};

ModelClasses esm_classes() {
  const auto masked = [](ConfigReader& config) {
    return language_model_head(masked_language_model_head(config, ActivationKind::gelu));
  };
  return ModelClasses{
      {{"EsmModel", pooler_head},
       {"EsmForMaskedLM", masked},
       {"EsmForSequenceClassification", dense_classifier(ActivationKind::tanh)},
       {"EsmForTokenClassification", plain_classifier(ClassifierInput::every_token)}}};
}

NameTable esm_names() {
  NameTable names = roberta_names("esm.", {kEsm});
  names.extras.push_back({"inv_freq", ExtraKind::rotary_buffer});
  names.extras.push_back({"position_ids", ExtraKind::position_ids});
  return names;
}

}  // namespace

std::vector<Family> esm_families() {
  return {{.model_types = {"esm"},
           .classes = esm_classes(),
           .reader = read_esm,
           .names = esm_names(),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
