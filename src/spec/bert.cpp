#include "bert.h"

#include "cross_attention.h"

namespace headroom::detail {

StackSpec read_biased_layers(ConfigReader& config, std::int64_t hidden_size,
                             ActivationKind activation) {
  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.self_attention = multi_head_attention(config, "num_attention_heads",
                                              config.size({"num_attention_heads"}), hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.ffn = {FfnKind::plain, config.size({"intermediate_size"}), activation, true};
  return stack;
}

void count_unread_head_bias(ModelSpec& spec) {
  const auto& head = spec.head.language_model;
  if (!head || head->weight == WeightSharing::shared) return;
  spec.counted_only.push_back({"head.unread_bias",
                               {spec.embedding.vocab_size},
                               WeightRole::head,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
}

void read_bert_encoder(ConfigReader& config, ModelSpec& spec,
                       ActivationKind activation_when_absent) {
  config.expect_text("position_embedding_type", "absolute");
  read_bert_layers(config, spec, activation_when_absent);
}

void read_bert_layers(ConfigReader& config, ModelSpec& spec,
                      ActivationKind activation_when_absent) {
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.embedding.type_vocab_size = config.count_or({"type_vocab_size"}, 2);
  spec.position.kind = PositionKind::learned;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 512);

  StackSpec stack = read_biased_layers(
      config, spec.hidden_size, read_activation(config, {"hidden_act"}, activation_when_absent));
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-12)};
  const double hidden_dropout = config.probability_or({"hidden_dropout_prob"}, 0.1);
  stack.dropout.embedding = hidden_dropout;
  stack.dropout.attention_output = hidden_dropout;
  stack.dropout.ffn_output = hidden_dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_probs_dropout_prob"}, 0.1);
  // With is_decoder, a token sees those before it.
  stack.self_attention.causal = config.flag_or({"is_decoder"}, false);
  spec.embedding.norm = stack.norm;
  spec.encoder = stack;
  const bool crosses = config.flag_or({"add_cross_attention"}, false);
  if (crosses) count_unused_cross_attention(spec);
}

}  // namespace headroom::detail
