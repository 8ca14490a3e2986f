// BART, mBART, Blenderbot, Marian, Pegasus and Whisper: encoder-decoders with biases everywhere
// (arXiv 1910.13461, 2001.08210, 2004.13637, 1804.00344, 1912.08777, 2212.04356). TrOCR's decoder
// is BART's (arXiv 2109.10282).
#include "bart.h"

#include <utility>

#include "../common_keys.h"
#include "../cross_attention.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

struct StackKeys {
  std::string_view layers;
  std::string_view heads;
  std::string_view ffn;
};

constexpr StackKeys kEncoder{"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"};
constexpr StackKeys kDecoder{"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"};

StackSpec read_stack(ConfigReader& config, std::int64_t hidden_size, const StackKeys& keys,
                     const EncoderDecoderFamily& family) {
  StackSpec stack;
  stack.num_layers = config.layers({keys.layers});
  stack.self_attention =
      multi_head_attention(config, keys.heads, config.size({keys.heads}), hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.key_bias = family.key_bias;
  stack.self_attention.output_bias = true;
  stack.ffn = {FfnKind::plain, config.size({keys.ffn}),
               read_activation(config, {"activation_function"}, family.activation), true};
  stack.norm_placement = family.placement;
  stack.norm = {NormKind::layer_norm, true, 1e-5};
  if (family.placement == NormPlacement::pre) stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"dropout"}, 0.1);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  stack.dropout.ffn_activation = config.probability_or({"activation_dropout"}, 0);
  return stack;
}

/// Classifies the end-of-sequence token.
ClassifierSpec sentence_classifier(ConfigReader& config) {
  ClassifierSpec classifier;
  classifier.input = ClassifierInput::end_token;
  classifier.token_id = read_token_id(config, "eos_token_id");
  classifier.dense = ActivationKind::tanh;
  return classifier;
}

/// BART's own default is three labels (BartConfig, transformers, models/bart).
HeadSpec bart_sentence_classifier(ConfigReader& config) {
  ClassifierSpec classifier = sentence_classifier(config);
  classifier.num_labels = label_count(config, 3);
  return classifier_head(classifier);
}

/// The head of the decoder alone, which has no bias.
HeadSpec decoder_head(ConfigReader& config) {
  return language_model_head(language_model_of(config, {.tied = true}));
}

/// Keys of older configs, now fixed by the class.
void ignore_old_keys(ConfigReader& config) {
  config.ignore({"encoder_layerdrop", "decoder_layerdrop", "init_std", "add_bias_logits",
                 "add_final_layer_norm", "normalize_before", "normalize_embedding",
                 "static_position_embeddings", "extra_pos_embeddings",
                 "force_bos_token_to_be_generated", "classif_dropout", "classifier_dropout",
                 "gradient_checkpointing", "is_encoder_decoder", "do_blenderbot_90_layernorm"});
}

/// Untied models have a table of the encoder, one of the decoder, and one more that is not read;
/// Marian's without shared embeddings have the first two, with a head that may be tied.
void separate_embeddings(ConfigReader& config, ModelSpec& spec) {
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  const bool shared = config.flag_or({"share_encoder_decoder_embeddings"}, true);
  if (tied && shared) return;
  spec.encoder_decoder_embedding = WeightSharing::separate;
  if (!shared) return;
  spec.counted_only.push_back({"shared_embeddings.weight",
                               {spec.embedding.vocab_size, spec.hidden_size},
                               WeightRole::embedding,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
}

/// The decoder as …ForCausalLM runs it: without an encoder, and without its cross-attention.
void keep_decoder_alone(ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.encoder.reset();
  spec.decoder->cross_attention.reset();
  spec.decoder_start_id.reset();
  count_unused_cross_attention(spec);
}

}  // namespace

ModelClasses encoder_decoder_classes(const std::string& prefix, std::string language_model_class,
                                     LogitsBias bias) {
  const auto language_model = [bias](ConfigReader& config) {
    LanguageModelHeadSpec head = language_model_of(config, {.tied = true});
    head.bias = bias == LogitsBias::buffer;
    head.bias_is_buffer = head.bias;
    return language_model_head(head);
  };
  const auto sequence = [](ConfigReader& config) {
    return classifier_head(sentence_classifier(config));
  };
  return ModelClasses{{{std::move(language_model_class), language_model},
                       {prefix + "Model", no_head},
                       {prefix + "ForSequenceClassification", sequence},
                       {prefix + "ForQuestionAnswering", answer_span_head},
                       {prefix + "ForCausalLM", decoder_head}}};
}

void read_encoder_decoder(ConfigReader& config, ModelSpec& spec,
                          const EncoderDecoderFamily& family) {
  spec.kind = ModelKind::encoder_decoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  const std::int64_t decoder = config.size_or({"decoder_vocab_size"}, spec.embedding.vocab_size);
  if (decoder != spec.embedding.vocab_size) {
    config.fail("decoder_vocab_size", "differs from vocab_size", "use one shared vocabulary");
  }
  if (config.flag_or({"scale_embedding"}, false)) {
    spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  }
  spec.position.kind = family.positions;
  spec.position.table = family.table;
  spec.position.offset = family.positions_offset;
  spec.position.max_position_embeddings = config.sum(
      family.positions_key, config.size_or({family.positions_key}, family.positions_when_absent),
      family.positions_offset);
  spec.encoder = read_stack(config, spec.hidden_size, kEncoder, family);
  spec.decoder = read_stack(config, spec.hidden_size, kDecoder, family);
  spec.decoder->cross_attention = spec.decoder->self_attention;
  spec.decoder->self_attention.causal = true;
  // The classes' other name of encoder_layers, which they read last.
  config.expect_number("num_hidden_layers", static_cast<double>(spec.encoder->num_layers));
  if (family.embedding_norm) spec.embedding.norm = spec.encoder->norm;
  const std::optional<std::int64_t> start = read_token_id(config, "decoder_start_token_id");
  if (family.start == DecoderStart::of_config) spec.decoder_start_id = start;
  const bool decoder_alone = spec.architecture.ends_with("ForCausalLM");
  if (decoder_alone) {
    keep_decoder_alone(spec);
    config.ignore({"share_encoder_decoder_embeddings"});
  } else if (family.encoder_input == InputKind::tokens) {
    separate_embeddings(config, spec);
  }
  ignore_old_keys(config);
}

namespace {

ModelClasses bart_classes() {
  ModelClasses classes = encoder_decoder_classes("Bart", "BartForConditionalGeneration");
  for (ModelClass& candidate : classes.list) {
    if (candidate.name == "BartForSequenceClassification")
      candidate.head = bart_sentence_classifier;
  }
  return classes;
}

void read_bart(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kOffset = 2;  // rows that the reference code never reads
  EncoderDecoderFamily family;
  family.positions_offset = kOffset;
  family.embedding_norm = true;
  read_encoder_decoder(config, spec, family);
}

void read_marian(ConfigReader& config, ModelSpec& spec) {
  EncoderDecoderFamily family;
  family.table = PositionTable::sinusoidal_halves;
  read_encoder_decoder(config, spec, family);
}

void read_pegasus(ConfigReader& config, ModelSpec& spec) {
  EncoderDecoderFamily family;
  family.placement = NormPlacement::pre;
  family.table = PositionTable::sinusoidal_halves;
  read_encoder_decoder(config, spec, family);
}

/// MVP: BART; its prompts are not used by default (arXiv 2206.12131).
void read_mvp(ConfigReader& config, ModelSpec& spec) {
  config.expect_flag("use_prompt", false);
  config.ignore({"prompt_length", "prompt_mid_dim"});
  read_bart(config, spec);
}

/// PLBart: BART for programming languages (arXiv 2103.06333).
void read_plbart(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kOffset = 2;
  EncoderDecoderFamily family;
  family.positions_offset = kOffset;
  family.embedding_norm = true;
  family.start = DecoderStart::language;
  read_encoder_decoder(config, spec, family);
}

void read_mbart(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kOffset = 2;
  EncoderDecoderFamily family;
  family.start = DecoderStart::language;
  family.placement = NormPlacement::pre;
  family.positions_offset = kOffset;
  family.embedding_norm = true;
  read_encoder_decoder(config, spec, family);
}

void read_blenderbot(ConfigReader& config, ModelSpec& spec) {
  EncoderDecoderFamily family;
  family.placement = NormPlacement::pre;
  family.positions_when_absent = 128;
  read_encoder_decoder(config, spec, family);
}

/// Blenderbot's small models: BART without the rows that are never read.
void read_blenderbot_small(ConfigReader& config, ModelSpec& spec) {
  EncoderDecoderFamily family;
  family.positions_when_absent = 512;
  family.embedding_norm = true;
  read_encoder_decoder(config, spec, family);
  spec.embedding.norm_before_positions = true;
}

/// Cross-attention of TrOCR's decoder, which a decoder alone loads and does not read: keys and
/// values of images of another width.
void count_image_attention(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t images = config.size_or({"cross_attention_hidden_size"}, spec.hidden_size);
  const StackSpec& stack = *spec.decoder;
  const std::int64_t width = spec.hidden_size;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, WeightRole role) {
    spec.counted_only.push_back({"decoder.layers.cross_attention" + name, std::move(shape), role,
                                 stack.num_layers, ModelPart::text,
                                 CountedUse::unused_cross_attention});
  };
  for (const char* const name : {".query", ".output"}) {
    add(std::string(name) + ".weight", {width, width}, WeightRole::attention);
    add(std::string(name) + ".bias", {width}, WeightRole::attention);
  }
  for (const char* const name : {".key", ".value"}) {
    add(std::string(name) + ".weight", {width, images}, WeightRole::attention);
    add(std::string(name) + ".bias", {width}, WeightRole::attention);
  }
  add("_norm.weight", {width}, WeightRole::norm);
  add("_norm.bias", {width}, WeightRole::norm);
}

/// TrOCR's decoder: BART's, with trained or computed positions.
void read_trocr(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kOffset = 2;
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  if (config.flag_or({"scale_embedding"}, false)) {
    spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  }
  const bool trained = config.flag_or({"use_learned_position_embeddings"}, true);
  const std::int64_t padding = config.position_after_padding();
  spec.position.kind = trained ? PositionKind::learned : PositionKind::sinusoidal;
  spec.position.table = trained ? PositionTable::trained : PositionTable::tensor2tensor;
  spec.position.offset = trained ? kOffset : padding;
  spec.position.max_position_embeddings =
      config.sum("max_position_embeddings", config.size_or({"max_position_embeddings"}, 512),
                 spec.position.offset);
  const EncoderDecoderFamily family{};
  spec.decoder = read_stack(config, spec.hidden_size, kDecoder, family);
  spec.decoder->self_attention.causal = true;
  if (config.flag_or({"layernorm_embedding"}, true)) spec.embedding.norm = spec.decoder->norm;
  count_image_attention(config, spec);
  config.ignore({"num_hidden_layers"});
  ignore_old_keys(config);
}

constexpr std::string_view kWhisperClassifier = "WhisperForAudioClassification";

void keep_encoder_alone(ModelSpec& spec) {
  spec.kind = ModelKind::encoder;
  spec.position = *spec.encoder_position;
  spec.encoder_position.reset();
  spec.embedding.vocab_size = 0;
  spec.decoder.reset();
  spec.not_run = "its encoder does not run without a decoder yet";
}

/// Whisper's classes; one classifies sound by the mean of its frames.
ModelClasses whisper_classes() {
  const auto sound = [](ConfigReader& config) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::mean_token;
    classifier.projection_size = config.size_or({"classifier_proj_size"}, 256);
    return classifier_head(classifier);
  };
  return either_of(
      encoder_decoder_classes("Whisper", "WhisperForConditionalGeneration", LogitsBias::none),
      {{{std::string(kWhisperClassifier), sound}}});
}

void read_whisper(ConfigReader& config, ModelSpec& spec) {
  EncoderDecoderFamily family;
  family.placement = NormPlacement::pre;
  family.key_bias = false;
  family.positions_key = "max_target_positions";
  family.positions_when_absent = 448;
  family.encoder_input = InputKind::audio;
  read_encoder_decoder(config, spec, family);
  spec.embedding.scale = EmbeddingScale::none;  // the class does not apply scale_embedding
  const AudioSpec audio{config.size_or({"num_mel_bins"}, 80), ActivationKind::gelu};
  const std::int64_t source_positions = config.size_or({"max_source_positions"}, 1500);
  if (spec.encoder) {
    spec.embedding.input = InputKind::audio;
    spec.embedding.audio = audio;
    spec.encoder_position = spec.position;
    spec.encoder_position->max_position_embeddings = source_positions;
  }
  if (spec.architecture == kWhisperClassifier) {
    keep_encoder_alone(spec);
    count_layer_weights(config, spec);
  }
  // Keys for training, or for classes with the encoder alone.
  config.ignore({"use_weighted_layer_sum", "classifier_proj_size", "apply_spec_augment",
                 "mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
                 "mask_feature_length", "mask_feature_min_masks", "median_filter_width",
                 "alignment_heads", "lang_ids"});
}

constexpr NameRule kBartStacks[] = {
    {"encoder.embeddings.position_embeddings.%", "encoder.embed_positions.%"},
    {"encoder.embeddings.norm.%", "encoder.layernorm_embedding.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.self_attn_layer_norm.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.final_layer_norm.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.fc1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.fc2.%"},
    {"encoder.final_norm.%", "encoder.layer_norm.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.self_attn.q_proj.%"},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.self_attn.k_proj.%"},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.self_attn.v_proj.%"},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.embeddings.position_embeddings.%", "decoder.embed_positions.%"},
    {"decoder.embeddings.norm.%", "decoder.layernorm_embedding.%"},
    {"decoder.layers.attention_norm.%", "decoder.layers.{}.self_attn_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.final_layer_norm.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.fc1.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.fc2.%"},
    {"decoder.final_norm.%", "decoder.layer_norm.%"},
    {"decoder.layers.attention.query.%", "decoder.layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.encoder_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "decoder.layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.encoder_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "decoder.layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.encoder_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "decoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.encoder_attn.out_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.encoder_attn_layer_norm.%"},
};

constexpr NameRule kBart[] = {
    {"encoder.embeddings.word_embeddings.%", "encoder.embed_tokens.%"},
    {"decoder.embeddings.word_embeddings.%", "decoder.embed_tokens.%"},
    {"shared_embeddings.%", "shared.%"},
    {"word_embeddings.%", "shared.%"},
    {"word_embeddings.%", "encoder.embed_tokens.%"},
    {"head.language_model.weight", "lm_head.weight"},
    {"head.language_model.weight", "output_projection.weight"},  // TrOCR
    {"head.language_model.bias", "final_logits_bias"},
    {"head.classifier.dense.%", "classification_head.dense.%"},
    {"head.classifier.%", "classification_head.out_proj.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

constexpr NameRule kWhisper[] = {
    {"word_embeddings.%", "decoder.embed_tokens.%"},
    {"encoder.embeddings.conv1.%", "encoder.conv1.%"},
    {"encoder.embeddings.conv2.%", "encoder.conv2.%"},
    {"head.language_model.%", "proj_out.%"},
};

// The encoder alone, beneath a classifier.
constexpr NameRule kWhisperClassifierNames[] = {
    {"embeddings.position_embeddings.%", "encoder.embed_positions.%"},
    {"embeddings.conv1.%", "encoder.conv1.%"},
    {"embeddings.conv2.%", "encoder.conv2.%"},
    {"head.layer_weights", "layer_weights"},
    {"head.classifier.projection.%", "projector.%"},
    {"head.classifier.%", "classifier.%"},
};

// Of the decoder alone. They fit the ends of an encoder's paths too, so they come last.
constexpr NameRule kDecoderAlone[] = {
    {"word_embeddings.%", "decoder.embed_tokens.%"},
    {"embeddings.position_embeddings.%", "decoder.embed_positions.%"},
    {"embeddings.norm.%", "decoder.layernorm_embedding.%"},
};

}  // namespace

NameTable bart_names(std::vector<std::span<const NameRule>> own) {
  own.insert(own.end(), {kBart, kBartStacks, kDecoderAlone});
  return {std::move(own),
          {"model."},
          {{"encoder.embed_tokens.weight", ExtraKind::tied_copy},
           {"decoder.embed_tokens.weight", ExtraKind::tied_copy},
           {"shared.weight", ExtraKind::tied_copy},
           {"lm_head.weight", ExtraKind::tied_copy},
           {"output_projection.weight", ExtraKind::tied_copy}}};
}

std::vector<Family> bart_families() {
  return {{.model_types = {"bart"},
           .classes = bart_classes(),
           .reader = read_bart,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"marian"},
           .classes = encoder_decoder_classes("Marian", "MarianMTModel"),
           .reader = read_marian,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"pegasus"},
           .classes = encoder_decoder_classes("Pegasus", "PegasusForConditionalGeneration"),
           .reader = read_pegasus,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"mbart"},
           .classes = encoder_decoder_classes("MBart", "MBartForConditionalGeneration"),
           .reader = read_mbart,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"mvp"},
           .classes = encoder_decoder_classes("Mvp", "MvpForConditionalGeneration"),
           .reader = read_mvp,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"plbart"},
           .classes = encoder_decoder_classes("PLBart", "PLBartForConditionalGeneration"),
           .reader = read_plbart,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"blenderbot"},
           .classes = encoder_decoder_classes("Blenderbot", "BlenderbotForConditionalGeneration"),
           .reader = read_blenderbot,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"blenderbot-small"},
           .classes = encoder_decoder_classes("BlenderbotSmall",
                                              "BlenderbotSmallForConditionalGeneration"),
           .reader = read_blenderbot_small,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"trocr"},
           .classes = ModelClasses{{{"TrOCRForCausalLM", decoder_head}}},
           .reader = read_trocr,
           .names = bart_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"whisper"},
           .classes = whisper_classes(),
           .reader = read_whisper,
           .names = NameTable{{kWhisper, kBartStacks, kDecoderAlone, kWhisperClassifierNames},
                              {"model."},
                              {{"proj_out.weight", ExtraKind::tied_copy}}},
           .gguf = None("whisper.cpp uses another file format")}};
}

}  // namespace headroom::detail
