#include "gpt.h"

namespace headroom::detail {

void read_gpt_sizes(ConfigReader& config, ModelSpec& spec, std::int64_t positions_when_absent) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"n_embd", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.max_position_embeddings =
      config.size_or({"n_positions", "max_position_embeddings"}, positions_when_absent);
  StackSpec stack;
  stack.num_layers = config.layers({"n_layer", "num_layers", "num_hidden_layers"});
  const std::int64_t heads = config.size({"n_head", "num_heads", "num_attention_heads"});
  stack.self_attention = multi_head_attention(config, "n_head", heads, spec.hidden_size);
  stack.self_attention.causal = true;
  stack.ffn = {FfnKind::plain,
               config.size_or({"n_inner", "intermediate_size"},
                              product(config, "n_embd", 4, spec.hidden_size)),
               read_activation(config, {"activation_function"}, ActivationKind::gelu_new), true};
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.dropout.embedding = config.probability_or({"embd_pdrop", "embed_dropout"}, 0);
  stack.dropout.attention_probs = config.probability_or({"attn_pdrop", "attention_dropout"}, 0);
  stack.dropout.attention_output = config.probability_or({"resid_pdrop", "resid_dropout"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  read_choice_score(config, spec);
  spec.decoder = stack;
}

ModelClasses double_heads_class(const std::string& prefix) {
  const auto heads = [](ConfigReader& config) {
    ClassifierSpec score;
    score.input = ClassifierInput::end_token;  // without an id: the last token
    score.num_labels = 1;
    score.dropout = config.probability_or({"summary_first_dropout"}, 0.1);
    HeadSpec head = classifier_head(score);
    head.language_model = language_model_of(config, {.tied = true});
    return head;
  };
  return ModelClasses{{{prefix + "DoubleHeadsModel", heads}}};
}

void read_choice_score(ConfigReader& config, ModelSpec& spec) {
  if (spec.architecture.ends_with("DoubleHeadsModel")) {
    config.expect_text("summary_type", "cls_index");
    for (const std::string_view key : {"summary_use_proj", "summary_proj_to_labels"}) {
      config.expect_flag(key, true);
    }
    config.expect_text("summary_activation", "");
  }
  config.ignore({"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj"});
}

NameTable gpt_names(std::span<const NameRule> rules) {
  return {{rules},
          {"transformer."},
          {{"attn.bias", ExtraKind::causal_mask},
           {"attn.masked_bias", ExtraKind::causal_mask},
           {"attention.bias", ExtraKind::causal_mask},
           {"attention.masked_bias", ExtraKind::causal_mask},
           {"lm_head.weight", ExtraKind::tied_copy}}};
}

std::span<const GgufKey> gguf_gpt2_keys() {
  static constexpr GgufKey kKeys[] = {
      {"context_length", "n_positions"},  {"embedding_length", "n_embd"},
      {"block_count", "n_layer"},         {"attention.head_count", "n_head"},
      {"feed_forward_length", "n_inner"}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
  };
  return kKeys;
}

}  // namespace headroom::detail
