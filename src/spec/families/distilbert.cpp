// DistilBERT: BERT's encoder without token types and pooler (arXiv 1910.01108).
#include "../family.h"

namespace headroom::detail {

void read_distilbert(ConfigReader& config, ModelSpec& spec) {
  const ActivationKind activation = read_activation(config, {"activation"}, ActivationKind::gelu);
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  const double dropout = config.probability_or({"dropout"}, 0.1);

  LanguageModelHeadSpec masked;
  masked.weight = tied ? WeightSharing::shared : WeightSharing::separate;
  masked.bias = true;
  masked.transform = activation;
  ClassifierSpec sequence;
  sequence.input = ClassifierInput::first_token;
  sequence.dense = ActivationKind::relu;
  sequence.dropout = config.probability_or({"seq_classif_dropout"}, 0.2);
  ClassifierSpec tokens;
  tokens.input = ClassifierInput::every_token;
  tokens.dropout = dropout;
  ClassifierSpec spans = tokens;
  spans.num_labels = 2;
  spans.dropout = config.probability_or({"qa_dropout"}, 0.1);
  read_architecture(config, spec,
                    {{"DistilBertModel", {}},
                     {"DistilBertForMaskedLM", language_model_head(masked)},
                     {"DistilBertForSequenceClassification", classifier_head(sequence)},
                     {"DistilBertForTokenClassification", classifier_head(tokens)},
                     {"DistilBertForQuestionAnswering", classifier_head(spans)}});

  // The position table is trained either way; this only says how it was first filled.
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

}  // namespace headroom::detail
