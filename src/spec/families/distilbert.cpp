// DistilBERT: BERT's encoder without token types and pooler (arXiv 1910.01108).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

HeadSpec masked_head(ConfigReader& config) {
  const ActivationKind activation = read_activation(config, {"activation"}, ActivationKind::gelu);
  return language_model_head(masked_language_model_head(config, activation));
}

ClassifierSpec sequence_classifier(ConfigReader& config) {
  ClassifierSpec classifier;
  classifier.input = ClassifierInput::first_token;
  classifier.dense = ActivationKind::relu;
  classifier.dropout = config.probability_or({"seq_classif_dropout"}, 0.2);
  return classifier;
}

ModelClasses distilbert_classes() {
  const auto sequence = [](ConfigReader& config) {
    return classifier_head(sequence_classifier(config));
  };
  const auto choice = [](ConfigReader& config) {
    ClassifierSpec classifier = sequence_classifier(config);
    classifier.num_labels = 1;
    return classifier_head(classifier);
  };
  const auto tokens = [](ConfigReader& config) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::every_token;
    classifier.dropout = config.probability_or({"dropout"}, 0.1);
    return classifier_head(classifier);
  };
  const auto spans = [](ConfigReader& config) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::every_token;
    classifier.dropout = config.probability_or({"qa_dropout"}, 0.1);
    classifier.spans = true;
    return classifier_head(classifier);
  };
  return ModelClasses{{{"DistilBertModel", no_head},
                       {"DistilBertForMaskedLM", masked_head},
                       {"DistilBertForSequenceClassification", sequence},
                       {"DistilBertForTokenClassification", tokens},
                       {"DistilBertForQuestionAnswering", spans},
                       {"DistilBertForMultipleChoice", choice}}};
}

void read_distilbert(ConfigReader& config, ModelSpec& spec) {
  const ActivationKind activation = read_activation(config, {"activation"}, ActivationKind::gelu);
  const double dropout = config.probability_or({"dropout"}, 0.1);
  // Only the initial values of the position table; it is trained either way.
  config.ignore({"sinusoidal_pos_embds"});
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"dim", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::learned;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 512);

  StackSpec stack;
  stack.num_layers = config.layers({"n_layers", "num_hidden_layers"});
  stack.self_attention = multi_head_attention(
      config, "n_heads", config.size({"n_heads", "num_attention_heads"}), spec.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.ffn = {FfnKind::plain, config.size({"hidden_dim"}), activation, true};
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true, 1e-12};
  stack.dropout.embedding = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0.1);
  spec.embedding.norm = stack.norm;
  spec.encoder = stack;
}

constexpr NameRule kDistilbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "transformer.layer.{}.attention.q_lin.%"},
    {"encoder.layers.attention.key.%", "transformer.layer.{}.attention.k_lin.%"},
    {"encoder.layers.attention.value.%", "transformer.layer.{}.attention.v_lin.%"},
    {"encoder.layers.attention.output.%", "transformer.layer.{}.attention.out_lin.%"},
    {"encoder.layers.attention_norm.%", "transformer.layer.{}.sa_layer_norm.%"},
    {"encoder.layers.mlp.up.%", "transformer.layer.{}.ffn.lin1.%"},
    {"encoder.layers.mlp.down.%", "transformer.layer.{}.ffn.lin2.%"},
    {"encoder.layers.mlp_norm.%", "transformer.layer.{}.output_layer_norm.%"},
    {"head.transform.dense.%", "vocab_transform.%"},
    {"head.transform.norm.%", "vocab_layer_norm.%"},
    {"head.language_model.%", "vocab_projector.%"},
    {"head.classifier.dense.%", "pre_classifier.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::vector<Family> distilbert_families() {
  return {{.model_types = {"distilbert"},
           .classes = distilbert_classes(),
           .reader = read_distilbert,
           .names = NameTable{{kDistilbert},
                              {"distilbert."},
                              {{"vocab_projector.weight", ExtraKind::tied_copy},
                               {"vocab_", ExtraKind::unused_head, NamePart::beginning}}},
           .gguf = None("llama.cpp stores it under the name of BERT")}};
}

}  // namespace headroom::detail
