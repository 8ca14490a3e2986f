// wav2vec 2.0, HuBERT, UniSpeech and WavLM: convolutions over audio samples, then a Transformer
// encoder (arXiv 2006.11477, 2106.07447, 2101.07597, 2110.13900).
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "../bert.h"
#include "../common_keys.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// The list at `key`, or the published class's seven layers.
std::vector<std::int64_t> layer_list(ConfigReader& config, std::string_view key,
                                     std::vector<std::int64_t> otherwise) {
  return config.is_list(key) ? config.counts(key) : std::move(otherwise);
}

std::vector<WaveformLayer> read_waveform_layers(ConfigReader& config) {
  const auto channels = layer_list(config, "conv_dim", std::vector<std::int64_t>(7, 512));
  const auto kernels = layer_list(config, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  const auto strides = layer_list(config, "conv_stride", {5, 2, 2, 2, 2, 2, 2});
  const std::size_t count = channels.size();
  if (count == 0 || kernels.size() != count || strides.size() != count) {
    config.fail("conv_dim", "does not have as many layers as conv_kernel and conv_stride",
                "give one number per layer in all three");
  }
  std::vector<WaveformLayer> layers;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::min({channels[i], kernels[i], strides[i]}) < 1) {
      config.fail("conv_dim", "has a layer without channels, kernel or stride", "use at least 1");
    }
    layers.push_back({channels[i], kernels[i], strides[i]});
  }
  return layers;
}

WaveformSpec read_waveform(ConfigReader& config, const ModelSpec& spec) {
  WaveformSpec waveform;
  waveform.layers = read_waveform_layers(config);
  config.ignore({"num_feat_extract_layers"});
  waveform.bias = config.flag_or({"conv_bias"}, false);
  waveform.norm = config.choice_or<WaveformNorm>(
      {"feat_extract_norm"},
      {{"group", WaveformNorm::first_group}, {"layer", WaveformNorm::every_layer}},
      WaveformNorm::first_group);
  waveform.activation = read_activation(config, {"feat_extract_activation"}, ActivationKind::gelu);
  waveform.projection_norm = config.flag_or({"feat_proj_layer_norm"}, true);
  waveform.position_kernel_size = config.size_or({"num_conv_pos_embeddings"}, 128);
  waveform.position_groups = config.size_or({"num_conv_pos_embedding_groups"}, 16);
  if (config.flag_or({"conv_pos_batch_norm"}, false)) waveform.position_norm = PositionNorm::batch;
  if (spec.hidden_size % waveform.position_groups != 0) {
    config.fail("num_conv_pos_embedding_groups", "does not divide hidden_size",
                "use a divisor of hidden_size");
  }
  return waveform;
}

// Keys of training, and of heads that only some classes have.
constexpr std::string_view kTrainingKeys[] = {"activation_dropout",
                                              "feat_proj_dropout",
                                              "feat_quantizer_dropout",
                                              "final_dropout",
                                              "attention_dropout",
                                              "hidden_dropout",
                                              "layerdrop",
                                              "apply_spec_augment",
                                              "mask_time_length",
                                              "mask_time_min_masks",
                                              "mask_feature_length",
                                              "mask_feature_min_masks",
                                              "ctc_loss_reduction",
                                              "ctc_zero_infinity",
                                              "diversity_loss_weight",
                                              "contrastive_logits_temperature",
                                              "num_negatives",
                                              "codevector_dim",
                                              "proj_codevector_dim",
                                              "num_codevector_groups",
                                              "num_codevectors_per_group",
                                              "tdnn_dim",
                                              "tdnn_kernel",
                                              "tdnn_dilation",
                                              "xvector_output_dim",
                                              "adapter_kernel_size",
                                              "adapter_stride",
                                              "num_adapter_layers",
                                              "output_hidden_size",
                                              "gradient_checkpointing",
                                              "tokenizer_class",
                                              "feature_grad_mult",
                                              "freeze_feat_extract_train",
                                              "mask_channel_length",
                                              "mask_channel_min_space",
                                              "mask_channel_other",
                                              "mask_channel_prob",
                                              "mask_channel_selection",
                                              "mask_time_min_space",
                                              "mask_time_other",
                                              "mask_time_selection",
                                              "no_mask_channel_overlap",
                                              "no_mask_time_overlap",
                                              "do_samples",
                                              "hidden_dropout_prob"};

void ignore_training_keys(ConfigReader& config) {
  for (const std::string_view key : kTrainingKeys) config.ignore({key});
  config.expect_flag("add_adapter", false);
  if (config.count_or({"adapter_attn_dim"}, 0) != 0) {
    config.fail("adapter_attn_dim", "adapters are not supported", "use a model without adapters");
  }
}

/// True if the class has an embedding of masked frames, which only training reads.
bool masks_frames(ConfigReader& config) {
  const double time = config.probability_or({"mask_time_prob"}, 0.05);
  const double feature = config.probability_or({"mask_feature_prob"}, 0);
  return time > 0 || feature > 0;
}

StackSpec read_layers(ConfigReader& config, const ModelSpec& spec) {
  StackSpec stack = read_biased_layers(
      config, spec.hidden_size, read_activation(config, {"hidden_act"}, ActivationKind::gelu));
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-5)};
  const bool stable = config.flag_or({"do_stable_layer_norm"}, false);
  stack.norm_placement = stable ? NormPlacement::pre : NormPlacement::post;
  if (stable) stack.final_norm = stack.norm;
  return stack;
}

/// Weights of a class whose head does not run here: of pretraining, or of speakers.
class CountedHead {
 public:
  explicit CountedHead(ModelSpec& spec) : spec_(spec) {
    if (spec.not_run.empty())
      spec.not_run = "its head of pretraining, or of speakers, has no kernels";
  }

  void add(const std::string& name, std::vector<std::int64_t> shape) {
    spec_.counted_only.push_back({"head." + name, std::move(shape), WeightRole::head, 1,
                                  ModelPart::audio, CountedUse::part_not_run});
  }
  void linear(const std::string& name, std::int64_t in, std::int64_t out) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }

 private:
  ModelSpec& spec_;
};

/// …ForXVector: layers over neighbouring frames, their mean and deviation over time, and an
/// embedding of the speaker, which training compares with those of `num_labels` speakers.
void count_speaker_head(ConfigReader& config, ModelSpec& spec) {
  std::vector<std::int64_t> widths = config.counts("tdnn_dim");
  std::vector<std::int64_t> kernels = config.counts("tdnn_kernel");
  const std::int64_t output = config.size_or({"xvector_output_dim"}, 512);
  if (!spec.architecture.ends_with("ForXVector")) return;
  if (widths.empty()) widths = {512, 512, 512, 512, 1500};
  if (kernels.empty()) kernels = {5, 3, 3, 1, 1};
  if (widths.size() != kernels.size()) {
    config.fail("tdnn_kernel", "does not have a kernel for each of tdnn_dim", "give one for each");
  }
  CountedHead head(spec);
  head.linear("speaker.projection", spec.hidden_size, widths.front());
  std::int64_t in = widths.front();
  for (std::size_t i = 0; i < widths.size(); ++i) {
    head.linear(fmt::format("speaker.layers.{}", i), product(config, "tdnn_kernel", in, kernels[i]),
                widths[i]);
    in = widths[i];
  }
  head.linear("speaker.features", product(config, "tdnn_dim", in, 2), output);
  head.linear("speaker.embedding", output, output);
  head.add("speaker.objective", {output, label_count(config, kDefaultLabels)});
}

void read_wav2vec2(ConfigReader& config, ModelSpec& spec) {
  ignore_training_keys(config);
  config.ignore({"classifier_proj_size"});
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size"});
  const std::int64_t vocabulary = config.size_or({"vocab_size"}, 32);
  if (spec.head.language_model) spec.embedding.vocab_size = vocabulary;
  spec.embedding.input = InputKind::waveform;
  spec.embedding.waveform = read_waveform(config, spec);
  spec.encoder = read_layers(config, spec);
  if (spec.encoder->norm_placement == NormPlacement::post) {
    spec.embedding.norm = spec.encoder->norm;
  }
  count_layer_weights(config, spec);
  count_speaker_head(config, spec);
  if (masks_frames(config)) {
    spec.counted_only.push_back({"embeddings.masked_frame",
                                 {spec.hidden_size},
                                 WeightRole::embedding,
                                 1,
                                 ModelPart::audio,
                                 CountedUse::loaded});
  }
}

/// Counts the codebooks that quantise `features` numbers of a frame (arXiv 2006.11477, section 2).
/// Returns the width of a quantised frame.
std::int64_t count_quantizer(ConfigReader& config, std::int64_t features, CountedHead& head) {
  const std::int64_t groups = config.size_or({"num_codevector_groups"}, 2);
  const std::int64_t width = config.size_or({"codevector_dim"}, 256);
  if (width % groups != 0) {
    config.fail("codevector_dim",
                fmt::format("{} is not a multiple of num_codevector_groups {}", width, groups),
                "use a multiple");
  }
  const std::int64_t codes = product(config, "num_codevectors_per_group",
                                     config.size_or({"num_codevectors_per_group"}, 320), groups);
  head.add("quantizer.codevectors", {1, codes, width / groups});
  head.linear("quantizer.scores", features, codes);
  return width;
}

/// Both projections to the space in which quantised features and hidden states are compared.
void count_projections(ConfigReader& config, ModelSpec& spec, std::int64_t features) {
  CountedHead head(spec);
  const std::int64_t compared = config.size_or({"proj_codevector_dim"}, 256);
  head.linear("project_quantized", count_quantizer(config, features, head), compared);
  head.linear("project_hidden", spec.hidden_size, compared);
}

/// Channels of the last convolution.
std::int64_t convolved_width(const ModelSpec& spec) {
  return spec.embedding.waveform->layers.back().channels;
}

bool is_pretraining(const ModelSpec& spec) { return spec.architecture.ends_with("ForPreTraining"); }

void read_wav2vec2_model(ConfigReader& config, ModelSpec& spec) {
  read_wav2vec2(config, spec);
  if (is_pretraining(spec)) count_projections(config, spec, convolved_width(spec));
}

/// UniSpeech: wav2vec 2.0 with keys of its own training. Its quantised features are projected back
/// to the hidden size, and hidden states to phonemes (arXiv 2101.07597).
void read_unispeech(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"replace_prob"});
  read_wav2vec2(config, spec);
  if (!is_pretraining(spec)) {
    config.ignore({"num_ctc_classes"});
    return;
  }
  const std::int64_t phonemes = config.size_or({"num_ctc_classes"}, 80);
  CountedHead head(spec);
  const std::int64_t compared = config.size_or({"proj_codevector_dim"}, 256);
  head.linear("project_quantized", count_quantizer(config, convolved_width(spec), head), compared);
  head.linear("project_hidden", compared, spec.hidden_size);
  head.linear("phonemes", spec.hidden_size, phonemes);
}

/// UniSpeech-SAT: wav2vec 2.0 whose pretraining also tells speakers apart (arXiv 2110.05752).
void read_unispeech_sat(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"replace_prob", "num_ctc_classes"});
  read_wav2vec2(config, spec);
  if (!is_pretraining(spec)) {
    config.ignore({"num_clusters"});
    return;
  }
  const std::int64_t clusters = config.size_or({"num_clusters"}, 504);
  count_projections(config, spec, spec.hidden_size);
  CountedHead head(spec);
  const std::int64_t width = config.size_or({"codevector_dim"}, 256);
  head.linear("speakers", spec.hidden_size, width);
  head.add("clusters", {clusters, width});
  head.add("features_norm.weight", {spec.hidden_size});
  head.add("features_norm.bias", {spec.hidden_size});
}

/// WavLM: wav2vec 2.0 with relative positions, which a gate of each query scales (arXiv 2110.13900,
/// section III-A).
void read_wavlm(ConfigReader& config, ModelSpec& spec) {
  read_wav2vec2(config, spec);
  PositionSpec& position = spec.position;
  position.kind = PositionKind::relative_bias;
  position.num_buckets = config.size_or({"num_buckets"}, 320);
  position.max_distance = config.size_or({"max_bucket_distance"}, 800);
  // Small distances have a bucket each: a quarter of all in either direction.
  if (position.max_distance <= position.num_buckets / 4) {
    config.fail("max_bucket_distance", "is not above num_buckets / 4", "use a larger distance");
  }
  spec.encoder->self_attention.gates_position_bias = true;
  config.ignore({"num_ctc_classes", "replace_prob"});
}

ModelClasses wav2vec2_classes(const std::string& prefix) {
  const auto characters = [](ConfigReader&) {
    LanguageModelHeadSpec head;
    head.bias = true;
    return language_model_head(head);
  };
  const auto sequence = [](ConfigReader& config) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::mean_token;
    classifier.projection_size = config.size_or({"classifier_proj_size"}, 256);
    return classifier_head(classifier);
  };
  const auto frame = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::every_token;
    return classifier_head(classifier);
  };
  return ModelClasses{{{prefix + "Model", no_head},
                       {prefix + "ForCTC", characters},
                       {prefix + "ForSequenceClassification", sequence},
                       {prefix + "ForAudioFrameClassification", frame}}};
}

constexpr NameRule kWav2vec2[] = {
    {"embeddings.convolutions.{i}.%", "feature_extractor.conv_layers.{i}.conv.%"},
    {"embeddings.convolutions.{i}.norm.%", "feature_extractor.conv_layers.{i}.layer_norm.%"},
    {"embeddings.projection_norm.%", "feature_projection.layer_norm.%"},
    {"embeddings.projection.%", "feature_projection.projection.%"},
    {"embeddings.masked_frame", "masked_spec_embed"},
    {"embeddings.position_convolution.length.weight",
     "encoder.pos_conv_embed.conv.parametrizations.weight.original0"},
    {"embeddings.position_convolution.length.weight", "encoder.pos_conv_embed.conv.weight_g"},
    {"embeddings.position_convolution.weight",
     "encoder.pos_conv_embed.conv.parametrizations.weight.original1"},
    {"embeddings.position_convolution.weight", "encoder.pos_conv_embed.conv.weight_v"},
    {"embeddings.position_convolution.weight", "encoder.pos_conv_embed.conv.weight"},
    {"embeddings.position_convolution.bias", "encoder.pos_conv_embed.conv.bias"},
    {"embeddings.position_norm.mean", "encoder.pos_conv_embed.batch_norm.running_mean"},
    {"embeddings.position_norm.variance", "encoder.pos_conv_embed.batch_norm.running_var"},
    {"embeddings.position_norm.%", "encoder.pos_conv_embed.batch_norm.%"},
    {"embeddings.norm.%", "encoder.layer_norm.%"},
    {"encoder.final_norm.%", "encoder.layer_norm.%"},
    {"layers.attention.query.%", "encoder.layers.{}.attention.q_proj.%"},
    {"layers.attention.key.%", "encoder.layers.{}.attention.k_proj.%"},
    {"layers.attention.value.%", "encoder.layers.{}.attention.v_proj.%"},
    {"layers.attention.output.%", "encoder.layers.{}.attention.out_proj.%"},
    {"layers.attention_norm.%", "encoder.layers.{}.layer_norm.%"},
    {"layers.mlp_norm.%", "encoder.layers.{}.final_layer_norm.%"},
    {"layers.mlp.up.%", "encoder.layers.{}.feed_forward.intermediate_dense.%"},
    {"layers.mlp.down.%", "encoder.layers.{}.feed_forward.output_dense.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.projection.%", "projector.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.layer_weights", "layer_weights"},
    {"head.speaker.projection.%", "projector.%"},
    {"head.speaker.layers.{i}.%", "tdnn.{i}.kernel.%"},
    {"head.speaker.features.%", "feature_extractor.%"},
    {"head.speaker.embedding.%", "classifier.%"},
    {"head.speaker.objective", "objective.weight"},
    {"head.quantizer.codevectors", "quantizer.codevectors"},
    {"head.quantizer.scores.%", "quantizer.weight_proj.%"},
    {"head.project_quantized.%", "project_q.%"},
    {"head.project_hidden.%", "project_hid.%"},
    {"head.phonemes.%", "ctc_proj.%"},
    {"head.speakers.%", "speaker_proj.%"},
    {"head.clusters", "label_embeddings_concat"},
    {"head.features_norm.%", "layer_norm_for_extract.%"},
};

/// The classes, and that of pretraining.
ModelClasses speech_pretraining_classes(const std::string& prefix) {
  return either_of(wav2vec2_classes(prefix), one_class(prefix + "ForPreTraining"));
}

/// Those, and the one that tells speakers apart.
ModelClasses speaker_classes(const std::string& prefix) {
  return either_of(speech_pretraining_classes(prefix), one_class(prefix + "ForXVector"));
}

constexpr NameRule kWavLm[] = {
    {"encoder.relative_attention_bias.%", "encoder.layers.0.attention.rel_attn_embed.%"},
    {"encoder.layers.attention.position_gate.%",
     "encoder.layers.{}.attention.gru_rel_pos_linear.%"},
    {"encoder.layers.attention.position_gate.scale",
     "encoder.layers.{}.attention.gru_rel_pos_const"},
};

Family wav2vec2_family(std::string_view model_type, ModelClasses classes,
                       std::string_view stored_prefix, FamilyReader reader) {
  return {.model_types = {model_type},
          .classes = std::move(classes),
          .reader = std::move(reader),
          .names = NameTable{{kWav2vec2},
                             {stored_prefix},
                             {{"batch_norm.num_batches_tracked", ExtraKind::layer_constant}}},
          .gguf = None("llama.cpp does not support this architecture")};
}

}  // namespace

std::vector<Family> wav2vec2_families() {
  return {
      wav2vec2_family("wav2vec2", speaker_classes("Wav2Vec2"), "wav2vec2.", read_wav2vec2_model),
      wav2vec2_family("hubert", wav2vec2_classes("Hubert"), "hubert.", read_wav2vec2),
      wav2vec2_family("unispeech", speech_pretraining_classes("UniSpeech"), "unispeech.",
                      read_unispeech),
      wav2vec2_family("unispeech-sat", speaker_classes("UniSpeechSat"), "unispeech_sat.",
                      read_unispeech_sat),
      {.model_types = {"wavlm"},
       .classes = either_of(wav2vec2_classes("WavLM"), one_class("WavLMForXVector")),
       .reader = read_wavlm,
       .names = NameTable{{kWavLm, kWav2vec2}, {"wavlm."}, {}},
       .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
