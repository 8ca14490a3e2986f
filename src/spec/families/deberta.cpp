// DeBERTa v1, v2 and v3: BERT's encoder with disentangled attention, which scores contents and
// relative positions apart (arXiv 2006.03654, section 3; 2111.09543).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../bert.h"
#include "../common_keys.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// True if `pos_att_type`, a list or words between bars, names `term`.
bool has_term(ConfigReader& config, std::string_view term) {
  if (config.is_list("pos_att_type")) {
    return std::ranges::count(config.texts("pos_att_type"), term) > 0;
  }
  return config.text_or({"pos_att_type"}, "").find(term) != std::string::npos;
}

/// Distances beyond half of the buckets, up to the largest, share the other half by their
/// logarithm.
void require_logarithmic_buckets(const ConfigReader& config, const DisentangledSpec& terms) {
  const std::int64_t middle = terms.num_buckets / 2;
  if (middle > 0 && terms.max_distance - 1 > middle) return;
  config.fail("position_buckets",
              fmt::format("{} buckets cannot hold distances up to {}", terms.num_buckets,
                          terms.max_distance),
              "write at least 2, and less than twice the largest distance");
}

DisentangledSpec read_disentangled(ConfigReader& config, const ModelSpec& spec) {
  DisentangledSpec disentangled;
  disentangled.content_to_position = has_term(config, "c2p");
  disentangled.position_to_content = has_term(config, "p2c");
  disentangled.shares_projections = config.flag_or({"share_att_key"}, false);
  const double most = config.number_or({"max_relative_positions"}, -1);
  disentangled.max_distance = most < 1 ? spec.position.max_position_embeddings
                                       : truncated(config, "max_relative_positions", most, 1);
  const double buckets = config.number_or({"position_buckets"}, -1);
  if (buckets > 0) {
    disentangled.num_buckets = truncated(config, "position_buckets", buckets, 1);
    require_logarithmic_buckets(config, disentangled);
  }
  const std::int64_t span = buckets > 0 ? disentangled.num_buckets : disentangled.max_distance;
  disentangled.num_positions = product(config, "position_buckets", 2, span);
  if (config.text_or({"norm_rel_ebd"}, "none").find("layer_norm") != std::string::npos) {
    disentangled.table_norm = spec.encoder->norm;
  }
  return disentangled;
}

/// Each term of the scores is scaled as if there were one more head dimension's worth of it.
double score_scale(const DisentangledSpec& terms, std::int64_t head_dim) {
  const int count = 1 + (terms.content_to_position ? 1 : 0) + (terms.position_to_content ? 1 : 0);
  return 1 / std::sqrt(static_cast<double>(head_dim) * count);
}

void read_convolution(ConfigReader& config, StackSpec& stack) {
  const std::int64_t kernel = config.count_or({"conv_kernel_size"}, 0);
  const ActivationKind activation = read_activation(config, {"conv_act"}, ActivationKind::tanh);
  config.expect_number("conv_groups", 1);
  if (kernel == 0) return;
  if (kernel % 2 == 0) config.fail("conv_kernel_size", "is even", "use an odd kernel");
  stack.input_convolution = ConvolutionSpec{kernel, 1, false, true, activation};
}

/// The choices that v1 shares with the later versions.
void read_deberta(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  StackSpec& stack = *spec.encoder;
  if (!config.has("type_vocab_size")) spec.embedding.type_vocab_size = 0;
  stack.norm.eps = config.number_or({"layer_norm_eps"}, 1e-7);
  spec.embedding.norm = stack.norm;
  const std::int64_t width = config.size_or({"embedding_size"}, spec.hidden_size);
  if (width != spec.hidden_size) {
    config.fail("embedding_size", "differs from hidden_size", "use the hidden size");
  }
  config.expect_number("attention_head_size", static_cast<double>(stack.self_attention.head_dim));
  config.expect_number("pooler_hidden_size", static_cast<double>(spec.hidden_size));
  config.ignore({"pooler_dropout", "legacy", "z_steps", "cls_dropout"});
  const DisentangledSpec disentangled = read_disentangled(config, spec);
  stack.self_attention.scale = AttentionScale::fixed;
  stack.self_attention.fixed_scale = score_scale(disentangled, stack.self_attention.head_dim);
  if (config.flag_or({"relative_attention"}, false)) {
    stack.self_attention.disentangled = disentangled;
  }
  if (!config.flag_or({"position_biased_input"}, true)) {
    spec.position.kind = PositionKind::none;
    // Relative positions are clamped, so that any length runs.
    spec.position.max_position_embeddings = 0;
  }
}

void read_deberta_v1(ConfigReader& config, ModelSpec& spec) {
  config.expect_flag("share_att_key", false);
  read_deberta(config, spec);
  AttentionSpec& attention = spec.encoder->self_attention;
  attention.key_bias = false;
  if (attention.disentangled) attention.disentangled->key_bias = false;
  config.expect_flag("talking_head", false);
}

/// The norm of a table of relative positions that the model lacks: it is loaded, not run.
void count_norm_without_table(ModelSpec& spec) {
  for (const char* const name : {"weight", "bias"}) {
    spec.counted_only.push_back({std::string("encoder.relative_embeddings_norm.") + name,
                                 {spec.hidden_size},
                                 WeightRole::norm,
                                 1,
                                 ModelPart::text,
                                 CountedUse::loaded});
  }
}

void read_deberta_v2(ConfigReader& config, ModelSpec& spec) {
  read_deberta(config, spec);
  const bool norms =
      config.text_or({"norm_rel_ebd"}, "none").find("layer_norm") != std::string::npos;
  if (norms && !spec.encoder->self_attention.disentangled) count_norm_without_table(spec);
  read_convolution(config, *spec.encoder);
}

ModelClasses deberta_classes(const std::string& prefix) {
  const auto masked = [](ConfigReader& config) {
    const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
    LanguageModelHeadSpec head = masked_language_model_head(config, activation);
    // The vendor's head has no table of its own.
    if (!config.flag_or({"legacy"}, true)) head.weight = WeightSharing::shared;
    return language_model_head(head);
  };
  // A dense layer on the first token, without the tanh of BERT's pooler.
  const auto pooled = [](ConfigReader& config) {
    ClassifierSpec head = encoder_classifier(config, ClassifierInput::first_token);
    head.dense = read_activation(config, {"pooler_hidden_act"}, ActivationKind::gelu);
    return head;
  };
  const auto sequence = [pooled](ConfigReader& config) { return classifier_head(pooled(config)); };
  const auto choice = [pooled](ConfigReader& config) {
    ClassifierSpec head = pooled(config);
    head.num_labels = 1;
    return classifier_head(head);
  };
  return ModelClasses{
      {{prefix + "Model", no_head},
       {prefix + "ForMaskedLM", masked},
       {prefix + "ForSequenceClassification", sequence},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {prefix + "ForQuestionAnswering", span_head},
       {prefix + "ForMultipleChoice", choice}}};
}

constexpr NameRule kDebertaV2[] = {
    {"encoder.relative_embeddings.weight", "encoder.rel_embeddings.weight"},
    {"encoder.relative_embeddings_norm.%", "encoder.LayerNorm.%"},
    {"encoder.input_convolution.norm.%", "encoder.conv.LayerNorm.%"},
    {"encoder.input_convolution.convolution.%", "encoder.conv.conv.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.self.query_proj.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.self.key_proj.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.self.value_proj.%"},
    {"encoder.layers.attention.position_query.%",
     "encoder.layer.{}.attention.self.pos_query_proj.%"},
    {"encoder.layers.attention.position_key.%", "encoder.layer.{}.attention.self.pos_key_proj.%"},
    {"head.transform.dense.%", "cls.predictions.transform.dense.%"},
    {"head.transform.dense.%", "lm_predictions.lm_head.dense.%"},
    {"head.transform.norm.%", "cls.predictions.transform.LayerNorm.%"},
    {"head.transform.norm.%", "lm_predictions.lm_head.LayerNorm.%"},
    {"head.language_model.bias", "cls.predictions.decoder.bias"},
    {"head.language_model.bias", "cls.predictions.bias"},
    {"head.language_model.bias", "lm_predictions.lm_head.bias"},
    {"head.classifier.dense.%", "pooler.dense.%"},
    {"head.classifier.%", "qa_outputs.%"},
    {"head.classifier.%", "classifier.%"},
};

// The queries, keys and values of each head, two biases beside them, and other names of both
// projections of the table.
constexpr NameRule kDeberta[] = {
    {"encoder.layers.attention.query.weight", "encoder.layer.{}.attention.self.in_proj.weight",
     part(0, Stacking::per_query_head)},
    {"encoder.layers.attention.key.weight", "encoder.layer.{}.attention.self.in_proj.weight",
     part(1, Stacking::per_query_head)},
    {"encoder.layers.attention.value.weight", "encoder.layer.{}.attention.self.in_proj.weight",
     part(2, Stacking::per_query_head)},
    {"encoder.layers.attention.query.bias", "encoder.layer.{}.attention.self.q_bias"},
    {"encoder.layers.attention.value.bias", "encoder.layer.{}.attention.self.v_bias"},
    {"encoder.layers.attention.position_query.%", "encoder.layer.{}.attention.self.pos_q_proj.%"},
    {"encoder.layers.attention.position_key.%", "encoder.layer.{}.attention.self.pos_proj.%"},
};

std::vector<ExtraRule> deberta_extras() {
  return {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
          {"cls.predictions.bias", ExtraKind::tied_copy},
          {"position_ids", ExtraKind::position_ids},
          {"cls.", ExtraKind::unused_head, NamePart::beginning},
          {"lm_predictions.", ExtraKind::unused_head, NamePart::beginning},
          {"mask_predictions.", ExtraKind::unused_head, NamePart::beginning},
          {"pooler.", ExtraKind::unused_head, NamePart::beginning}};
}

}  // namespace

std::vector<Family> deberta_families() {
  return {{.model_types = {"deberta"},
           .classes = deberta_classes("Deberta"),
           .reader = read_deberta_v1,
           .names = NameTable{{kDeberta, kDebertaV2, bert_rules()}, {"deberta."}, deberta_extras()},
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"deberta-v2"},
           .classes = deberta_classes("DebertaV2"),
           .reader = read_deberta_v2,
           .names = NameTable{{kDebertaV2, bert_rules()}, {"deberta."}, deberta_extras()},
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
