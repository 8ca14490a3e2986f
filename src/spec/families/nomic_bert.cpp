// NomicBERT: BERT's post-norm encoder with RoPE, SwiGLU and no biases in its GEMMs (arXiv
// 2402.01613). Nomic Embed v2 has biases, and routed experts in every second layer (arXiv
// 2502.07972).
#include "../common_keys.h"
#include "../decoder.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../rope.h"

namespace headroom::detail {
namespace {

ModelClasses nomic_bert_classes() {
  const auto masked = [](ConfigReader& config) {
    const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::silu);
    return language_model_head(masked_language_model_head(config, activation));
  };
  return ModelClasses{
      {{"NomicBertModel", no_head},
       {"NomicBertForMaskedLM", masked},
       {"NomicBertForPreTraining", masked},
       {"NomicBertForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {"NomicBertForTokenClassification", plain_classifier(ClassifierInput::every_token)}}};
}

/// Choices of the publisher's own class that its weights do not use, and keys of its kernels.
void expect_published_choices(ConfigReader& config) {
  for (const std::string_view off :
       {"causal", "prenorm", "use_rms_norm", "parallel_block", "parallel_block_tied_norm",
        "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"}) {
    config.expect_flag(off, false);
  }
  config.expect_flag("scale_attn_weights", true);
  config.expect_flag("add_pooling_layer", false);
  config.expect_number("rotary_emb_fraction", 1);
  config.ignore({"dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln", "use_flash_attn",
                 "use_xentropy", "reorder_and_upcast_attn", "max_trained_positions",
                 "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj", "rotary_emb_scale_base"});
}

/// The publisher's class rounds the table up to whole multiples.
std::int64_t padded_vocabulary(ConfigReader& config) {
  const std::int64_t words = config.size({"vocab_size"});
  const std::int64_t multiple = config.size_or({"pad_vocab_size_multiple"}, 1);
  return (words + multiple - 1) / multiple * multiple;
}

/// `activation_function`, of the publisher's class, or `hidden_act` of a gated network.
FfnSpec read_nomic_network(ConfigReader& config, std::int64_t hidden_size) {
  FfnSpec network{FfnKind::gated, 0, ActivationKind::silu};
  network.bias = config.flag_or({"mlp_fc1_bias"}, false);
  if (config.flag_or({"mlp_fc2_bias"}, network.bias) != network.bias) {
    config.fail("mlp_fc2_bias", "differs from mlp_fc1_bias", "use one value for both");
  }
  if (config.has("activation_function")) {
    const bool plain = config.is_text("activation_function", "gelu");
    network.kind = plain ? FfnKind::plain : FfnKind::gated;
    network.activation = config.choice_or<ActivationKind>({"activation_function"},
                                                          {{"swiglu", ActivationKind::silu},
                                                           {"geglu", ActivationKind::gelu},
                                                           {"gelu", ActivationKind::gelu}},
                                                          ActivationKind::silu);
  } else {
    network.activation = read_activation(config, {"hidden_act"}, ActivationKind::silu);
  }
  constexpr std::int64_t kDefaultExpansion = 4;
  network.intermediate_size = config.size_or(
      {"intermediate_size", "n_inner"}, product(config, "n_inner", kDefaultExpansion, hidden_size));
  return network;
}

/// Experts in the layers whose number is 1 modulo moe_every_n_layers: unscaled softmax weights of
/// the best, and one bias for their sum, which GGUF files leave out (`experts_bias`).
void read_nomic_experts(ConfigReader& config, ModelSpec& spec, StackSpec& stack) {
  const std::int64_t period = config.count_or({"moe_every_n_layers"}, 0);
  config.expect_flag("moe_normalize_expert_weights", false);
  config.expect_flag("expert_choice_router", false);
  config.expect_number("num_shared_experts", 0);
  config.expect_number("ffn_div", 1);
  config.expect_number("moe_resid_pdrop", stack.dropout.ffn_output);
  config.ignore({"moe_impl"});
  ExpertsSpec experts;
  experts.sum_bias = config.flag_or({"experts_bias"}, true);
  if (period == 0) return config.ignore({"num_experts", "moe_top_k"});
  if (stack.ffn.kind != FfnKind::plain) {
    config.fail("moe_every_n_layers", "stands beside a gated activation_function",
                "use \"gelu\": the class has no gated experts");
  }
  experts.num_experts = config.size({"num_experts"});
  experts.num_experts_per_tok = config.size({"moe_top_k"});
  experts.intermediate_size = stack.ffn.intermediate_size;
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    routed.push_back(layer % period == 1);
  }
  set_experts(stack, routed, experts);
  if (!experts.sum_bias) {
    spec.assumptions.emplace_back("llama.cpp's files leave out the bias of the experts' sum");
  }
}

void read_nomic_bert(ConfigReader& config, ModelSpec& spec) {
  expect_published_choices(config);
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size", "n_embd"});
  spec.embedding.vocab_size = padded_vocabulary(config);
  spec.embedding.type_vocab_size = config.count_or({"type_vocab_size"}, 2);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings =
      config.size_or({"max_position_embeddings", "n_positions"}, 2048);

  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers", "n_layer"});
  const std::int64_t heads = config.size({"num_attention_heads", "n_head"});
  stack.self_attention =
      multi_head_attention(config, "num_attention_heads", heads, spec.hidden_size);
  config.expect_number("head_dim", static_cast<double>(stack.self_attention.head_dim));
  stack.self_attention.qkv_bias = config.flag_or({"qkv_proj_bias"}, false);
  stack.self_attention.output_bias = stack.self_attention.qkv_bias;
  RopeDefaults rope;
  rope.theta = config.number_or({"rotary_emb_base"}, 1000);
  spec.position.rope = read_rope(config, spec.position, stack.self_attention.head_dim, rope);
  config.expect_number("rotary_scaling_factor", 1);
  stack.ffn = read_nomic_network(config, spec.hidden_size);
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true,
                config.number_or({"layer_norm_eps", "layer_norm_epsilon"}, 1e-12)};
  spec.embedding.norm = stack.norm;
  const double hidden_dropout = config.probability_or({"hidden_dropout_prob", "resid_pdrop"}, 0);
  stack.dropout.embedding = config.probability_or({"embd_pdrop"}, hidden_dropout);
  stack.dropout.attention_output = hidden_dropout;
  stack.dropout.ffn_output = hidden_dropout;
  stack.dropout.attention_probs =
      config.probability_or({"attention_probs_dropout_prob", "attn_pdrop"}, 0);
  read_nomic_experts(config, spec, stack);
  spec.encoder = stack;
}

constexpr NameRule kNomicBert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "emb_ln.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.attn.Wqkv.%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.attn.Wqkv.%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.attn.Wqkv.%", part(2)},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.attn.out_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.mlp.fc11.%"},
    {"encoder.layers.mlp.gate.%", "encoder.layers.{}.mlp.fc12.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.mlp.fc1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.mlp.fc2.%"},
    {"encoder.layers.mlp.router.%", "encoder.layers.{}.mlp.router.layer.%"},
    {"encoder.layers.mlp.experts.up.weight", "encoder.layers.{}.mlp.experts.mlp.w1",
     stacked_experts()},
    {"encoder.layers.mlp.experts.down.weight", "encoder.layers.{}.mlp.experts.mlp.w2",
     stacked_experts(transposed())},
    {"encoder.layers.mlp.experts.bias", "encoder.layers.{}.mlp.experts.bias"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "cls.predictions.transform.dense.%"},
    {"head.transform.norm.%", "cls.predictions.transform.layer_norm.%"},
    {"head.language_model.weight", "cls.predictions.decoder.weight"},
    {"head.language_model.bias", "cls.predictions.decoder.bias"},
    {"head.language_model.bias", "cls.predictions.bias"},
    {"head.classifier.%", "classifier.%"},
};

constexpr GgufKey kNomicKeys[] = {
    {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"rope.freq_base", "rotary_emb_base"},
};

void finish_nomic_bert(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_count("type_vocab_size", metadata.rows("token_types.weight").value_or(0));
}

GgufForm nomic_gguf() {
  const std::vector<GgufFlag> biases = {{"blk.0.attn_qkv.bias", "qkv_proj_bias"},
                                        {"blk.0.ffn_up.bias", "mlp_fc1_bias"}};
  return GgufForm(GgufConversion::none,
                  {{.name = "nomic-bert",
                    .common = kNomicKeys,
                    .flags = biases,
                    .head_dim = GgufHeadDim::never,
                    .finish = finish_nomic_bert},
                   {.name = "nomic-bert-moe",
                    .common = kNomicKeys,
                    .own = {{"moe_every_n_layers", "moe_every_n_layers"},
                            {"expert_count", "num_experts"},
                            {"expert_used_count", "moe_top_k"}},
                    .flags = biases,
                    .constants = {{"activation_function", "\"gelu\""}, {"experts_bias", "false"}},
                    .head_dim = GgufHeadDim::never,
                    .finish = finish_nomic_bert}});
}

}  // namespace

std::vector<Family> nomic_bert_families() {
  return {{.model_types = {"nomic_bert"},
           .classes = nomic_bert_classes(),
           .reader = read_nomic_bert,
           .names = NameTable{{kNomicBert},
                              {"bert.", "nomic_bert."},
                              {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
                               {"cls.predictions.bias", ExtraKind::tied_copy},
                               {"cls.", ExtraKind::unused_head, NamePart::beginning},
                               {"mlp.experts.bias", ExtraKind::unused_part},
                               {"pooler.dense.weight", ExtraKind::unused_head},
                               {"pooler.dense.bias", ExtraKind::unused_head}}},
           .gguf = nomic_gguf()}};
}

}  // namespace headroom::detail
