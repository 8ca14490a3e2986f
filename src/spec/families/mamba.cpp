// Mamba (arXiv 2312.00752), Falcon Mamba (arXiv 2410.05355) and Mamba-2 (arXiv 2405.21060).
#include <cmath>

#include "../common_keys.h"
#include "../family.h"
#include "../state_space.h"

namespace headroom::detail {
namespace {

/// `intermediate_size`, else expand · hidden_size.
std::int64_t read_inner_size(ConfigReader& config, const ModelSpec& spec) {
  const double expand = config.number_or({"expand"}, 2);
  const std::int64_t computed = truncated(config, "expand", expand, spec.hidden_size);
  return config.size_or({"intermediate_size", "d_inner"}, computed);
}

StateSpaceSpec read_mamba_layer(ConfigReader& config, ModelSpec& spec) {
  spec.hidden_size = config.size({"hidden_size", "d_model"});
  return read_selective_layer(config, {}, spec.hidden_size, read_inner_size(config, spec));
}

void read_mamba(ConfigReader& config, ModelSpec& spec) {
  const StateSpaceSpec mixer = read_mamba_layer(config, spec);
  read_state_space_decoder(config, spec, mixer);
  // Of the original code's file: the ones above again, and choices of kernels.
  config.ignore({"ssm_cfg", "rms_norm", "fused_add_norm", "pad_vocab_size_multiple"});
}

void read_falcon_mamba(ConfigReader& config, ModelSpec& spec) {
  StateSpaceSpec mixer = read_mamba_layer(config, spec);
  mixer.parameter_norm = NormSpec{NormKind::rms_norm, false,
                                  config.number_or({"mixer_rms_eps"}, 1e-6), NormWeight::none};
  read_state_space_decoder(config, spec, mixer);
}

void read_mamba2(ConfigReader& config, ModelSpec& spec) {
  spec.hidden_size = config.size({"hidden_size"});
  StateSpaceSpec mixer = read_dual_layer(config, kMamba2Keys, read_inner_size(config, spec));
  config.ignore({"time_step_rank", "norm_before_gate", "rms_norm"});  // the class reads neither
  const NormSpec norm{NormKind::rms_norm, false, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  mixer.gated_norm = GatedNormSpec{norm};
  read_state_space_decoder(config, spec, mixer);
}

// Mamba's projections have other parts than Mamba-2's.
constexpr NameRule kMamba[] = {
    {"decoder.layers.mixer.x.%", "layers.{}.mixer.in_proj.%", part(0)},
    {"decoder.layers.mixer.gate.%", "layers.{}.mixer.in_proj.%", part(1)},
    {"decoder.layers.mixer.parameters.%", "layers.{}.mixer.x_proj.%"},
    {"decoder.layers.mixer.time_step.%", "layers.{}.mixer.dt_proj.%"},
    {"embeddings.word_embeddings.%", "embeddings.%"},
    {"embeddings.word_embeddings.%", "embedding.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.norm.%"},
    {"decoder.layers.mixer.convolution.%", "layers.{}.mixer.conv1d.%"},
    {"decoder.layers.mixer.a_log", "layers.{}.mixer.A_log"},
    {"decoder.layers.mixer.d", "layers.{}.mixer.D"},
    {"decoder.layers.mixer.out.%", "layers.{}.mixer.out_proj.%"},
    {"decoder.final_norm.%", "norm_f.%"},
    {"head.language_model.%", "lm_head.%"},
};

constexpr NameRule kHead[] = {{"head.language_model.%", "lm_head.%"}};

constexpr GgufKey kMambaKeys[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {"ssm.conv_kernel", "conv_kernel"},
    {"ssm.inner_size", "intermediate_size"},
    {"ssm.state_size", "state_size"},
};

/// llama.cpp stores the number of heads as the rank of the time step.
void finish_mamba2(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::int64_t heads = metadata.count("ssm.time_step_rank").value_or(0);
  const std::int64_t inner = metadata.count("ssm.inner_size").value_or(0);
  if (heads == 0 || inner % heads != 0) metadata.fail("ssm.time_step_rank", "is no head count");
  config.set_count("num_heads", heads);
  config.set_count("head_dim", inner / heads);
}

NameTable backbone_names(std::vector<std::span<const NameRule>> rules) {
  return {std::move(rules), {"backbone."}, {{"lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace

std::vector<Family> mamba_families() {
  return {{.model_types = {"mamba"},
           .classes = decoder_classes("Mamba", {.tied = true, .float32_logits = true}),
           .reader = read_mamba,
           .names = backbone_names({kMamba}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "mamba",
                              .common = kMambaKeys,
                              .own = {{"ssm.time_step_rank", "time_step_rank"}},
                              .head_dim = GgufHeadDim::never}},
                            {gguf_selective_rules()})},
          {.model_types = {"falcon_mamba"},
           .classes = decoder_classes("FalconMamba", {.tied = true, .float32_logits = true}),
           .reader = read_falcon_mamba,
           .names = backbone_names({kMamba}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "mamba",
                              .needs = "ssm.dt_b_c_rms",
                              .common = kMambaKeys,
                              .own = {{"ssm.time_step_rank", "time_step_rank"}},
                              .head_dim = GgufHeadDim::never}},
                            {gguf_selective_rules()})},
          {.model_types = {"mamba2"},
           .classes = decoder_classes("Mamba2", {.float32_logits = true}),
           .reader = read_mamba2,
           .names = backbone_names({mixer_rules(), kHead}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "mamba2",
                              .common = kMambaKeys,
                              .own = {{"ssm.group_count", "n_groups"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_mamba2}},
                            {gguf_dual_rules()})}};
}

}  // namespace headroom::detail
