// XLNet: an encoder whose attention reads relative positions and segments (arXiv 1906.08237).
#include <algorithm>

#include "../common_keys.h"
#include "../family.h"
#include "../towers/tower_weights.h"

namespace headroom::detail {
namespace {

// Classes with a dense layer on the last token, whose head is counted and does not run.
constexpr std::string_view kSequenceClassifier = "XLNetForSequenceClassification";
constexpr std::string_view kChoiceClassifier = "XLNetForMultipleChoice";

/// XLNetSequenceSummary, and a projection of it to labels.
void count_summary_head(ConfigReader& config, ModelSpec& spec) {
  const bool chooses = spec.architecture == kChoiceClassifier;
  if (!chooses && spec.architecture != kSequenceClassifier) return;
  const std::int64_t labels = label_count(config, kDefaultLabels);
  TowerWeights head(spec, ModelPart::text, CountedUse::part_not_run);
  if (config.flag_or({"summary_use_proj"}, true)) {
    head.linear("head.summary", spec.hidden_size, spec.hidden_size, WeightRole::head);
  }
  head.linear("head.projection", spec.hidden_size, chooses ? 1 : labels, WeightRole::head);
  spec.not_run = "its head has no kernel yet";
}

ModelClasses xlnet_classes() {
  const auto language_model = [](ConfigReader& config) {
    LanguageModelHeadSpec head = language_model_of(config, {.tied = true});
    head.bias = true;
    return language_model_head(head);
  };
  const auto tokens = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::every_token;
    return classifier_head(classifier);
  };
  return ModelClasses{{{"XLNetLMHeadModel", language_model},
                       {"XLNetModel", no_head},
                       {"XLNetForTokenClassification", tokens},
                       {std::string(kSequenceClassifier), no_head},
                       {std::string(kChoiceClassifier), no_head},
                       {"XLNetForQuestionAnsweringSimple", answer_span_head}}};
}

/// Keys of memories of earlier passes, which a single pass lacks, of training, and of heads that no
/// class here has.
void ignore_other_keys(ConfigReader& config) {
  config.ignore({"mem_len", "reuse_len", "use_mems_eval", "use_mems_train", "untie_r",
                 "summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout",
                 "start_n_top", "end_n_top", "dropatt", "init", "init_range", "init_std",
                 "max_position_embeddings", "n_token"});
  config.expect_text("attn_type", "bi");
  config.expect_flag("bi_data", false);
  config.ignore({"same_length"});  // of a causal mask, which attn_type "bi" has not
}

void read_xlnet(ConfigReader& config, ModelSpec& spec) {
  ignore_other_keys(config);
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  StackSpec stack;
  stack.num_layers = config.layers({"n_layer", "num_hidden_layers"});
  stack.self_attention = multi_head_attention(
      config, "n_head", config.size({"n_head", "num_attention_heads"}), spec.hidden_size);
  config.expect_number("d_head", static_cast<double>(stack.self_attention.head_dim));
  const double clamp = config.number_or({"clamp_len"}, -1);  // negative: none
  stack.self_attention.transformer_xl =
      TransformerXlSpec{truncated(config, "clamp_len", std::max(clamp, 0.0), 1)};
  stack.ffn = {FfnKind::plain, config.size({"d_inner"}),
               read_activation(config, {"ff_activation"}, ActivationKind::gelu), true};
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-12)};
  const double dropout = config.probability_or({"dropout"}, 0.1);
  stack.dropout = {dropout, dropout, dropout, dropout, dropout, dropout};
  spec.encoder = stack;
  spec.counted_only.push_back({"embeddings.mask",
                               {1, 1, spec.hidden_size},
                               WeightRole::embedding,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
  count_summary_head(config, spec);
}

constexpr NameRule kXlnet[] = {
    {"embeddings.word_embeddings.%", "word_embedding.%"},
    {"embeddings.mask", "mask_emb"},
    {"layers.attention.query.weight", "layer.{}.rel_attn.q", transposed()},
    {"layers.attention.key.weight", "layer.{}.rel_attn.k", transposed()},
    {"layers.attention.value.weight", "layer.{}.rel_attn.v", transposed()},
    {"layers.attention.output.weight", "layer.{}.rel_attn.o"},
    {"layers.attention.position_key.weight", "layer.{}.rel_attn.r", transposed()},
    {"layers.attention.content_bias", "layer.{}.rel_attn.r_w_bias"},
    {"layers.attention.position_bias", "layer.{}.rel_attn.r_r_bias"},
    {"layers.attention.segment_bias", "layer.{}.rel_attn.r_s_bias"},
    {"layers.attention.segments", "layer.{}.rel_attn.seg_embed"},
    {"layers.attention_norm.%", "layer.{}.rel_attn.layer_norm.%"},
    {"layers.mlp.up.%", "layer.{}.ff.layer_1.%"},
    {"layers.mlp.down.%", "layer.{}.ff.layer_2.%"},
    {"layers.mlp_norm.%", "layer.{}.ff.layer_norm.%"},
    {"head.language_model.%", "lm_loss.%"},
    {"head.summary.%", "sequence_summary.summary.%"},
    {"head.projection.%", "logits_proj.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::vector<Family> xlnet_families() {
  return {
      {.model_types = {"xlnet"},
       .classes = xlnet_classes(),
       .reader = read_xlnet,
       .names = NameTable{{kXlnet}, {"transformer."}, {{"lm_loss.weight", ExtraKind::tied_copy}}},
       .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
