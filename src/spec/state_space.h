// Reader of state-space layers: the sizes that Mamba, Mamba-2 and their hybrids name differently.
#pragma once

#include <string_view>

#include "config_reader.h"
#include "headroom/model_spec.h"
#include "model_class.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// Keys of a Mamba-2 layer's sizes, and the values of a class that finds none of them.
struct DualKeys {
  std::string_view num_heads = "mamba_n_heads";
  std::string_view head_dim = "mamba_d_head";
  std::string_view num_groups = "mamba_n_groups";
  std::string_view state_size = "mamba_d_state";
  std::string_view conv_kernel = "mamba_d_conv";
  std::string_view expand = "mamba_expand";
  std::string_view chunk_size = "mamba_chunk_size";
  std::string_view projection_bias = "mamba_proj_bias";
  std::string_view convolution_bias = "mamba_conv_bias";
  std::int64_t num_heads_when_absent = 128;
  std::int64_t num_groups_when_absent = 1;
  std::int64_t state_size_when_absent = 256;
  std::int64_t chunk_size_when_absent = 256;
};

/// Keys of Mamba-2 by itself, as its class names them.
inline constexpr DualKeys kMamba2Keys = {.num_heads = "num_heads",
                                         .head_dim = "head_dim",
                                         .num_groups = "n_groups",
                                         .state_size = "state_size",
                                         .conv_kernel = "conv_kernel",
                                         .chunk_size = "chunk_size",
                                         .projection_bias = "use_bias",
                                         .convolution_bias = "use_conv_bias",
                                         .num_groups_when_absent = 8,
                                         .state_size_when_absent = 128};

/// Reads a Mamba-2 layer of `inner_size` channels: heads, groups, state, convolution, biases and
/// the limits of its time step. A head dimension that is absent or "auto" is inner_size / heads.
[[nodiscard]] StateSpaceSpec read_dual_layer(ConfigReader& config, const DualKeys& keys,
                                             std::int64_t inner_size);

/// Keys of a Mamba layer's sizes.
struct SelectiveKeys {
  std::string_view state_size = "state_size";
  std::string_view conv_kernel = "conv_kernel";
  std::string_view time_step_rank = "time_step_rank";
  std::string_view projection_bias = "use_bias";
  std::string_view convolution_bias = "use_conv_bias";
};

/// Reads a Mamba layer of `inner_size` channels. A rank that is absent or "auto" is ⌈hidden / 16⌉.
[[nodiscard]] StateSpaceSpec read_selective_layer(ConfigReader& config, const SelectiveKeys& keys,
                                                  std::int64_t hidden_size,
                                                  std::int64_t inner_size);

/// The attention of a layer with this mixer only.
[[nodiscard]] AttentionSpec state_space_layer(const StateSpaceSpec& spec);

/// Gives the mixer to the layers where `attends` is false.
void set_state_space(StackSpec& stack, const std::vector<bool>& attends,
                     const StateSpaceSpec& spec);

/// States that a class whose convolution has the activation of the FFN runs with SiLU only.
void require_silu_to_run(ModelSpec& spec);

/// A decoder of state-space layers without feed-forward networks: hidden_size, vocab_size,
/// num_hidden_layers and the norms.
void read_state_space_decoder(ConfigReader& config, ModelSpec& spec, const StateSpaceSpec& mixer);

/// Keys that change no figure: initial values, kernels, and precision of the residual.
void ignore_state_space_keys(ConfigReader& config);

/// Names of the parts of Mamba's and Mamba-2's projections in GGUF files.
[[nodiscard]] std::span<const NameRule> gguf_selective_rules();
[[nodiscard]] std::span<const NameRule> gguf_dual_rules();

/// Names of a mixer's weights under layers.{}.mamba (hybrids) and layers.{}.mixer.
[[nodiscard]] std::span<const NameRule> hybrid_mamba_rules();
[[nodiscard]] std::span<const NameRule> mixer_rules();

}  // namespace headroom::detail
