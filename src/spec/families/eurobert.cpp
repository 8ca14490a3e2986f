// Llama's layers whose tokens see both sides: EuroBERT (arXiv 2503.05500; transformers,
// models/eurobert), and NVIDIA's embedding and ranking models (llama_bidirectional_model.py of
// llama-3.2-nv-embedqa-1b-v2 and llama-3.2-nv-rerankqa-1b-v2).
#include "../decoder.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Reads the classifier of sequences: of the first token, or of the mean of all. `late` averages
/// the scores of all tokens instead.
HeadSpec sequence_head(ConfigReader& config) {
  ClassifierSpec head;
  head.input = config.choice_or<ClassifierInput>({"classifier_pooling"},
                                                 {{"bos", ClassifierInput::first_token},
                                                  {"mean", ClassifierInput::mean_token},
                                                  {"late", ClassifierInput::mean_token}},
                                                 ClassifierInput::mean_token);
  head.dense = ActivationKind::gelu;
  return classifier_head(head);
}

ModelClasses eurobert_classes() {
  const auto masked = [](ConfigReader& config) {
    LanguageModelHeadSpec head = language_model_of(config, {.tied = false});
    head.bias = config.flag_or({"mlp_bias"}, false);
    return language_model_head(head);
  };
  const auto tokens = [](ConfigReader& /*config*/) {
    ClassifierSpec head;
    head.input = ClassifierInput::every_token;
    return classifier_head(head);
  };
  return ModelClasses{{{"EuroBertModel", no_head},
                       {"EuroBertForMaskedLM", masked},
                       {"EuroBertForSequenceClassification", sequence_head},
                       {"EuroBertForTokenClassification", tokens}}};
}

void read_both_sides(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults) {
  read_decoder(config, spec, defaults);
  StackSpec stack = *spec.decoder;
  stack.self_attention.causal = false;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  spec.kind = ModelKind::encoder;
  spec.encoder = std::move(stack);
  spec.decoder.reset();
}

void read_eurobert(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 8192;
  defaults.norm_eps = 1e-5;
  read_both_sides(config, spec, defaults);
  const bool averages_scores =
      !config.has("classifier_pooling") || config.is_text("classifier_pooling", "late");
  if (spec.architecture.ends_with("ForSequenceClassification") && averages_scores) {
    spec.not_run = "its classifier averages the scores of all tokens, which has no kernel yet";
  }
}

void read_llama_bidirectional(ConfigReader& config, ModelSpec& spec) {
  read_both_sides(config, spec, {});
  config.ignore({"pooling", "temperature"});  // of the vectors, and of training
}

/// Ranks by the tokens that `pooling` takes.
HeadSpec ranking_head(ConfigReader& config) {
  ClassifierSpec head;
  head.input = config.choice_or<ClassifierInput>({"pooling"},
                                                 {{"avg", ClassifierInput::mean_token},
                                                  {"cls", ClassifierInput::first_token},
                                                  {"last", ClassifierInput::last_token}},
                                                 ClassifierInput::mean_token);
  head.bias = false;
  return classifier_head(head);
}

constexpr NameRule kEuroBert[] = {
    {"encoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"encoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"encoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"encoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"encoder.layers.attention.output.%", "layers.{}.self_attn.o_proj.%"},
    {"encoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"encoder.layers.mlp.gate.%", "layers.{}.mlp.gate_proj.%"},
    {"encoder.layers.mlp.up.%", "layers.{}.mlp.up_proj.%"},
    {"encoder.layers.mlp.down.%", "layers.{}.mlp.down_proj.%"},
    {"encoder.final_norm.%", "norm.%"},
    {"head.classifier.dense.%", "dense.%"},
};

NameTable eurobert_names() {
  NameTable names = llama_names({kEuroBert});
  names.extras.push_back({"lm_head.bias", ExtraKind::unused_head});
  return names;
}

}  // namespace

std::vector<Family> eurobert_families() {
  return {
      {.model_types = {"eurobert"},
       .classes = eurobert_classes(),
       .reader = read_eurobert,
       .names = eurobert_names(),
       .gguf = GgufForm(GgufConversion::none, {{.name = "eurobert",
                                                .common = gguf_rms_norm_keys(),
                                                .flags = {{"blk.0.attn_q.bias", "attention_bias"},
                                                          {"blk.0.ffn_down.bias", "mlp_bias"}},
                                                .head_dim = GgufHeadDim::always}})},
      {.model_types = {"llama_bidirec"},
       .classes = ModelClasses{{{"LlamaBidirectionalModel", no_head},
                                {"LlamaBidirectionalForSequenceClassification", ranking_head}}},
       .reader = read_llama_bidirectional,
       .names = eurobert_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "llama-embed",
                                                             .common = gguf_rms_norm_keys(),
                                                             .flags = gguf_llama_biases(),
                                                             .finish = finish_rope_scaling}})}};
}

}  // namespace headroom::detail
