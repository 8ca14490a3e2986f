// Reader for Llama-style decoders, and the choices in which their families differ.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common_keys.h"
#include "config_reader.h"
#include "model_class.h"
#include "rope.h"

namespace headroom::detail {

/// Which attention projections have a bias.
enum class BiasRule {
  none,
  query_key_value,          ///< always Q, K and V, never the output
  all,                      ///< always all four
  key_for_all,              ///< `attention_bias`: all four
  key_for_query_key_value,  ///< `attention_bias`: Q, K and V
};

/// Size of a head that a config leaves out: hidden_size / num_attention_heads, which the heads must
/// divide, or that number rounded down, as a class may have it; `own`: the family's reader sets it.
enum class HeadSizeRule { divides, rounded_down, own };

/// Defaults and fixed choices of one Llama-style family.
struct DecoderDefaults {
  /// Default sizes, for a family whose published configs omit them.
  struct Sizes {
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t num_hidden_layers = 0;
    std::int64_t num_attention_heads = 0;
    std::int64_t vocab_size = 0;
  };
  std::optional<Sizes> sizes{};
  std::optional<std::int64_t> num_hidden_layers{};  ///< of a config that lists its layers
  std::optional<std::int64_t> intermediate_size{};  ///< default of a family without a dense FFN
  RopeDefaults rope{};
  std::int64_t max_position_embeddings = 2048;
  double norm_eps = 1e-6;
  NormSpec norm{NormKind::rms_norm, false};
  std::optional<std::int64_t> num_key_value_heads{};  ///< default; null means all heads
  std::optional<std::int64_t> head_dim{};             ///< default; else hidden / heads
  HeadSizeRule head_size = HeadSizeRule::divides;
  BiasRule bias = BiasRule::key_for_all;
  bool bias_when_absent = false;
  FfnKind ffn = FfnKind::gated;
  ActivationKind activation = ActivationKind::silu;
  /// The class computes it whatever hidden_act says.
  std::optional<ActivationKind> fixed_activation{};
};

/// Reads sizes, heads, norms, RoPE and an FFN without biases into `spec.decoder`. The family's
/// reader adds its own choices afterwards.
void read_decoder(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults);

/// Reads num_attention_heads, num_key_value_heads and head_dim.
[[nodiscard]] AttentionSpec read_heads(ConfigReader& config, std::int64_t hidden_size,
                                       const DecoderDefaults& defaults);

/// Reads `sliding_window`: null means no window, an absent key `when_absent` (0: no window).
[[nodiscard]] WindowSpec read_window(ConfigReader& config, std::int64_t when_absent);

/// Reads `sliding_window` of a class whose sliding layers need one. Throws Error{invalid_input} for
/// null and 0.
[[nodiscard]] WindowSpec read_required_window(ConfigReader& config, std::int64_t when_absent);

/// Decoder classes that compute the logits in float32 for the loss.
[[nodiscard]] ModelClasses llama_classes(const std::string& prefix);

/// Reads `text_config`, the text model inside a multimodal config, with `read`. The text model's
/// head is one of `classes`; `spec.architecture` keeps the wrapper's class.
void read_text_config(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes,
                      const std::function<void(ConfigReader& text, ModelSpec& spec)>& read);

/// Keys of an expert layer and their defaults (0: required).
struct ExpertKeys {
  ConfigReader::Keys num_experts;
  std::int64_t num_experts_when_absent = 0;
  std::int64_t per_token_when_absent = 0;
};

/// Reads the number of experts and of experts per token.
[[nodiscard]] ExpertsSpec read_experts(ConfigReader& config, const ExpertKeys& keys);

/// Gives `experts` to the layers where `routed` is true; the others keep their dense FFN.
void set_experts(StackSpec& stack, const std::vector<bool>& routed, const ExpertsSpec& experts);

/// Gives `experts` to every decoder_sparse_step-th layer, except those in `mlp_only_layers`, or in
/// `dense` without that key.
void spread_qwen_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                         std::vector<std::int64_t> dense = {});

/// Reads Qwen's windows: use_sliding_window, max_window_layers, sliding_window, layer_types.
void read_qwen_windows(ConfigReader& config, StackSpec& stack);

/// The layers that apply RoPE: those with 1 in `no_rope_layers`; without that key, all but every
/// no_rope_layer_interval-th.
[[nodiscard]] std::vector<bool> read_rotary_layers(ConfigReader& config, std::int64_t num_layers);

/// The layers with full attention: by `layer_types` if present, whose other words are `others`,
/// else by `rule`. Throws Error{invalid_input} for another word or a wrong number of them.
[[nodiscard]] std::vector<bool> read_full_attention_layers(
    ConfigReader& config, std::int64_t num_layers, std::initializer_list<std::string_view> others,
    const std::function<bool(std::int64_t)>& rule);

/// The layers with a window: by `layer_types` if present, else by `rule`.
[[nodiscard]] std::vector<bool> read_windowed_layers(ConfigReader& config, std::int64_t num_layers,
                                                     const std::function<bool(std::int64_t)>& rule);

/// Applies `change` to the layers where `first` is false.
void vary_layers(StackSpec& stack, const std::vector<bool>& first,
                 const std::function<void(LayerVariant&)>& change);

/// Gives `window` to the attention of the windowed layers; the others keep full attention.
void set_windows(StackSpec& stack, const std::vector<bool>& windowed, const WindowSpec& window);

}  // namespace headroom::detail
