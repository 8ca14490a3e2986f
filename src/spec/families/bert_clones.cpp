// Encoders that differ from BERT and RoBERTa in few choices: Megatron-BERT, XLM-RoBERTa-XL and
// RoBERTa-PreLayerNorm with norms before each part, Data2Vec, DPR, ERNIE with task types, LayoutLM,
// RoFormer with RoPE, and BigBird with sparse attention (arXiv 1909.08053, 2105.00572, 1904.01038,
// 2202.03555, 2004.04906, 2107.02137, 2104.09864, 2007.14062).
#include <utility>

#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../towers/tower_weights.h"

namespace headroom::detail {
namespace {

void move_norms_before(ModelSpec& spec) {
  StackSpec& stack = *spec.encoder;
  stack.norm_placement = NormPlacement::pre;
  stack.final_norm = stack.norm;
  if (spec.head.language_model) spec.head.language_model->transform_norm = stack.norm;
}

/// Positions start after the id of the padding token.
void offset_positions(ConfigReader& config, ModelSpec& spec) {
  spec.position.offset = config.position_after_padding();
  spec.position.skips_padding = true;
}

void read_data2vec_text(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  offset_positions(config, spec);
}

void read_megatron_bert(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  move_norms_before(spec);
  spec.embedding.norm.reset();
}

void read_roberta_prelayernorm(ConfigReader& config, ModelSpec& spec) {
  read_data2vec_text(config, spec);
  move_norms_before(spec);
}

void read_xlm_roberta_xl(ConfigReader& config, ModelSpec& spec) {
  read_data2vec_text(config, spec);
  move_norms_before(spec);
  spec.embedding.norm.reset();
  if (!config.has("type_vocab_size")) spec.embedding.type_vocab_size = 1;
}

void read_ernie(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kTasks = 3;
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  const std::int64_t tasks = config.size_or({"task_type_vocab_size"}, kTasks);
  if (!config.flag_or({"use_task_id"}, false)) return;
  spec.counted_only.push_back({"embeddings.task_type_embeddings.weight",
                               {tasks, spec.hidden_size},
                               WeightRole::embedding,
                               1,
                               ModelPart::text});
  spec.not_run = "its embedding of task types has no kernel yet";
}

/// DPR (arXiv 2004.04906): a question or a passage as the first token of BERT.
void read_dpr(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  config.expect_number("projection_dim", 0);
}

/// Counts the pooler that a class without use for it loads.
void count_unread_pooler(ModelSpec& spec) {
  if (spec.head.pooler) return;
  const auto add = [&](const char* path, std::vector<std::int64_t> shape) {
    spec.counted_only.push_back(
        {path, std::move(shape), WeightRole::head, 1, ModelPart::text, CountedUse::loaded});
  };
  add("head.pooler.dense.weight", {spec.hidden_size, spec.hidden_size});
  add("head.pooler.dense.bias", {spec.hidden_size});
}

constexpr std::string_view kBigBirdSpans = "BigBirdForQuestionAnswering";

/// BigBirdForQuestionAnsweringHead: a network with a residual and a norm, and the ends of a span.
void count_big_bird_spans(ModelSpec& spec) {
  TowerWeights head(spec, ModelPart::text, CountedUse::part_not_run);
  const std::int64_t inner = spec.encoder->ffn.intermediate_size;
  head.linear("head.network.up", spec.hidden_size, inner, WeightRole::head);
  head.linear("head.network.down", inner, spec.hidden_size, WeightRole::head);
  head.norm(NormKind::layer_norm, "head.network.norm", spec.hidden_size);
  head.linear("head.spans", spec.hidden_size, 2, WeightRole::head);
  spec.not_run = "its head has no kernel yet";
}

constexpr NameRule kBigBird[] = {
    {"head.network.up.%", "qa_classifier.intermediate.dense.%"},
    {"head.network.down.%", "qa_classifier.output.dense.%"},
    {"head.network.norm.%", "qa_classifier.output.LayerNorm.%"},
    {"head.spans.%", "qa_classifier.qa_outputs.%"},
};

/// BigBird: BERT whose tokens see blocks of keys; they count as all keys.
void read_big_bird(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kPositions = 4096;
  read_bert_encoder(config, spec, ActivationKind::gelu_new);
  count_unread_head_bias(spec);
  if (!config.has("max_position_embeddings")) {
    spec.position.max_position_embeddings = kPositions;
  }
  spec.encoder->self_attention.qkv_bias = config.flag_or({"use_bias"}, true);
  if (config.flag_or({"rescale_embeddings"}, false)) {
    spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  }
  if (spec.architecture == kBigBirdSpans) {
    count_big_bird_spans(spec);
  } else {
    count_unread_pooler(spec);
  }
  config.ignore({"block_size", "num_random_blocks"});
  if (config.is_text("attention_type", "original_full")) return;
  config.expect_text("attention_type", "block_sparse");
  spec.not_run = "its block-sparse attention has no kernel yet";
  spec.assumptions.emplace_back("block-sparse attention counts as attention to all keys");
}

ModelClasses big_bird_classes() {
  const auto masked = [](ConfigReader& config) {
    const ActivationKind activation =
        read_activation(config, {"hidden_act"}, ActivationKind::gelu_new);
    return language_model_head(masked_language_model_head(config, activation));
  };
  const ModelClasses classes{
      {{"BigBirdModel", pooler_head},
       {"BigBirdForMaskedLM", masked},
       {"BigBirdForCausalLM", masked},
       {"BigBirdForSequenceClassification", dense_classifier(ActivationKind::gelu_new)},
       {"BigBirdForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {"BigBirdForMultipleChoice", choice_head},
       {std::string(kBigBirdSpans), no_head}}};
  // It has no class of the next sentence alone.
  return either_of(classes, {{pretraining_classes("BigBird", masked).list.front()}});
}

/// LayoutLM: BERT with places on a page (arXiv 1912.13318): their tables are counted.
void read_layoutlm(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kPlaces = 1024;
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  const std::int64_t places = config.size_or({"max_2d_position_embeddings"}, kPlaces);
  for (const char* const name : {"x", "y", "height", "width"}) {
    spec.counted_only.push_back({std::string("embeddings.") + name + "_position_embeddings.weight",
                                 {places, spec.hidden_size},
                                 WeightRole::embedding,
                                 1,
                                 ModelPart::text,
                                 CountedUse::loaded});
  }
  count_unread_pooler(spec);
  spec.not_run = "its places on a page have no kernel yet";
}

/// RoFormer: BERT with RoPE in place of positions (arXiv 2104.09864). The class stores the table of
/// its sines and cosines.
void read_roformer(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kPositions = 1536;
  read_bert_layers(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  spec.position.kind = PositionKind::rotary;
  spec.position.rope.layout = RopeLayout::interleaved;
  if (!config.has("max_position_embeddings")) {
    spec.position.max_position_embeddings = kPositions;
  }
  const std::int64_t width = config.size_or({"embedding_size"}, spec.hidden_size);
  if (width != spec.hidden_size) {
    spec.embedding.embedding_size = width;
    spec.embedding.projection_bias = true;
  }
  config.expect_flag("rotary_value", false);
  spec.counted_only.push_back(
      {"encoder.rotary_table.weight",
       {spec.position.max_position_embeddings, spec.encoder->self_attention.head_dim},
       WeightRole::embedding,
       1,
       ModelPart::text,
       CountedUse::loaded});
}

HeadSpec bert_like_masked_head(ConfigReader& config) {
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  return language_model_head(masked_language_model_head(config, activation));
}

/// BERT's heads under another prefix.
ModelClasses bert_like_classes(const std::string& prefix) {
  return ModelClasses{
      {{prefix + "Model", pooler_head},
       {prefix + "ForMaskedLM", bert_like_masked_head},
       {prefix + "ForCausalLM", bert_like_masked_head},
       {prefix + "ForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {prefix + "ForQuestionAnswering", span_head},
       {prefix + "ForMultipleChoice", choice_head}}};
}

/// Those, and BERT's heads of pretraining.
ModelClasses pretrained_classes(const std::string& prefix) {
  return either_of(bert_like_classes(prefix), pretraining_classes(prefix, bert_like_masked_head));
}

ModelClasses roformer_classes() {
  const auto sequence = [](ConfigReader& config) {
    return dense_classifier(read_activation(config, {"hidden_act"}, ActivationKind::gelu))(config);
  };
  return ModelClasses{
      {{"RoFormerModel", no_head},
       {"RoFormerForMaskedLM", bert_like_masked_head},
       {"RoFormerForCausalLM", bert_like_masked_head},
       {"RoFormerForSequenceClassification", sequence},
       {"RoFormerForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {"RoFormerForQuestionAnswering", span_head}}};
}

constexpr NameRule kRoFormer[] = {
    {"embeddings.projection.%", "embeddings_project.%"},
    {"encoder.rotary_table.%", "encoder.embed_positions.%"},
    {"head.classifier.%", "classifier.out_proj.%"},
};

constexpr NameRule kMegatronBert[] = {
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.ln.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.ln.%"},
    {"encoder.final_norm.%", "encoder.ln.%"},
};

constexpr NameRule kPreLayerNorm[] = {
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.LayerNorm.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.intermediate.LayerNorm.%"},
    {"encoder.final_norm.%", "LayerNorm.%"},
};

constexpr NameRule kXlmRobertaXl[] = {
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.self_attn_layer_norm.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.LayerNorm.%"},
    {"encoder.final_norm.%", "encoder.LayerNorm.%"},
};

constexpr NameRule kErnie[] = {
    {"embeddings.task_type_embeddings.%", "embeddings.task_type_embeddings.%"},
};

NameTable bert_like_names(std::string_view prefix, std::span<const NameRule> own) {
  return {{own, bert_rules()},
          {prefix},
          {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
           {"cls.predictions.bias", ExtraKind::tied_copy},
           {"cls.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.dense.weight", ExtraKind::unused_head},
           {"pooler.dense.bias", ExtraKind::unused_head},
           {"position_ids", ExtraKind::position_ids}}};
}

}  // namespace

std::vector<Family> bert_clones_families() {
  constexpr std::string_view kNoGguf = "llama.cpp does not support this architecture";
  return {{.model_types = {"megatron-bert"},
           .classes = pretrained_classes("MegatronBert"),
           .reader = read_megatron_bert,
           .names = bert_like_names("bert.", kMegatronBert),
           .gguf = None(kNoGguf)},
          {.model_types = {"ernie"},
           .classes = pretrained_classes("Ernie"),
           .reader = read_ernie,
           .names = bert_like_names("ernie.", kErnie),
           .gguf = None(kNoGguf)},
          {.model_types = {"big_bird"},
           .classes = big_bird_classes(),
           .reader = read_big_bird,
           .names = bert_like_names("bert.", kBigBird),
           .gguf = None(kNoGguf)},
          {.model_types = {"roformer"},
           .classes = roformer_classes(),
           .reader = read_roformer,
           .names = bert_like_names("roformer.", kRoFormer),
           .gguf = None(kNoGguf)},
          {.model_types = {"layoutlm"},
           .classes = bert_like_classes("LayoutLM"),
           .reader = read_layoutlm,
           .names = bert_like_names("layoutlm.", {}),
           .gguf = None(kNoGguf)},
          {.model_types = {"dpr"},
           .classes = {{{"DPRQuestionEncoder", no_head}, {"DPRContextEncoder", no_head}}},
           .reader = read_dpr,
           .names = NameTable{{bert_rules()},
                              {"question_encoder.bert_model.", "ctx_encoder.bert_model."},
                              {{"bert_model.pooler.dense.weight", ExtraKind::unused_head},
                               {"bert_model.pooler.dense.bias", ExtraKind::unused_head},
                               {"position_ids", ExtraKind::position_ids}}},
           .gguf = None(kNoGguf)},
          {.model_types = {"data2vec-text"},
           .classes = roberta_classes("Data2VecText"),
           .reader = read_data2vec_text,
           .names = roberta_names("data2vec_text."),
           .gguf = None(kNoGguf)},
          {.model_types = {"roberta-prelayernorm"},
           .classes = roberta_classes("RobertaPreLayerNorm"),
           .reader = read_roberta_prelayernorm,
           .names = roberta_names("roberta_prelayernorm.", {kPreLayerNorm}),
           .gguf = None(kNoGguf)},
          {.model_types = {"xlm-roberta-xl"},
           .classes = roberta_classes("XLMRobertaXL"),
           .reader = read_xlm_roberta_xl,
           .names = roberta_names("roberta.", {kXlmRobertaXl}),
           .gguf = None(kNoGguf)}};
}

}  // namespace headroom::detail
