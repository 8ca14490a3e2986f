// What decoders that are built like Llama's share, and the choices in which they differ.
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

/// Which projections of an attention have biases, and what decides it.
enum class BiasRule {
  none,
  query_key_value,          ///< always, but not the output
  all,                      ///< always
  key_for_all,              ///< `attention_bias`: all four
  key_for_query_key_value,  ///< `attention_bias`: not the output
};

/// A family in the manner of Llama, by what absent keys mean and what its code fixes.
struct DecoderDefaults {
  /// What sizes are when absent, for a family whose published configs leave them out.
  struct Sizes {
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t num_hidden_layers = 0;
    std::int64_t num_attention_heads = 0;
    std::int64_t vocab_size = 0;
  };
  std::optional<Sizes> sizes{};
  RopeDefaults rope{};
  std::int64_t max_position_embeddings = 2048;
  double norm_eps = 1e-6;
  NormSpec norm{NormKind::rms_norm, false};
  std::optional<std::int64_t> num_key_value_heads{};  ///< when absent; null means all heads
  std::optional<std::int64_t> head_dim{};             ///< when absent; else hidden / heads
  BiasRule bias = BiasRule::key_for_all;
  bool bias_when_absent = false;
  FfnKind ffn = FfnKind::gated;
  ActivationKind activation = ActivationKind::silu;
};

/// Reads sizes, heads, norms, rotary positions and a feed-forward network without biases. Leaves
/// `spec.decoder` ready for the family's own choices.
void read_decoder(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults);

/// Heads of an attention: num_attention_heads, num_key_value_heads, head_dim.
[[nodiscard]] AttentionSpec read_heads(ConfigReader& config, std::int64_t hidden_size,
                                       const DecoderDefaults& defaults);

/// A sliding window by `sliding_window`; null means none, an absent key `when_absent` (0: none).
[[nodiscard]] WindowSpec read_window(ConfigReader& config, std::int64_t when_absent);

/// The classes of a decoder whose head is computed in float32 for the loss.
[[nodiscard]] ModelClasses llama_classes(const std::string& prefix);

/// Reads `text_config`, the text model's config inside that of a multimodal model, with `read`. Its
/// head is one of `classes`; the wrapper's class stays in `spec.architecture`.
void read_text_config(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes,
                      const std::function<void(ConfigReader& text, ModelSpec& spec)>& read);

/// Keys of a layer of experts, and what they mean when absent (0: they must be there).
struct ExpertKeys {
  ConfigReader::Keys num_experts;
  std::int64_t num_experts_when_absent = 0;
  std::int64_t per_token_when_absent = 0;
};

/// How many experts there are, and how many a token takes.
[[nodiscard]] ExpertsSpec read_experts(ConfigReader& config, const ExpertKeys& keys);

/// Layers of which `routed` is true have `experts`; the others the network that the stack has now.
void set_experts(StackSpec& stack, const std::vector<bool>& routed, const ExpertsSpec& experts);

/// Qwen's windows: use_sliding_window, max_window_layers, sliding_window, layer_types.
void read_qwen_windows(ConfigReader& config, StackSpec& stack);

/// Which layers turn: by `no_rope_layers` (1: it turns), else all but every
/// no_rope_layer_interval-th.
[[nodiscard]] std::vector<bool> read_turned_layers(ConfigReader& config, std::int64_t num_layers);

/// Whether each layer has a window: by `layer_types` where it is there, else by `rule`.
[[nodiscard]] std::vector<bool> read_windowed_layers(ConfigReader& config, std::int64_t num_layers,
                                                     const std::function<bool(std::int64_t)>& rule);

/// Layers of which `first` is true are as the stack is now; the others as `change` makes of that.
void vary_layers(StackSpec& stack, const std::vector<bool>& first,
                 const std::function<void(LayerVariant&)>& change);

/// The attention of the windowed layers gets `window`; the others have none.
void set_windows(StackSpec& stack, const std::vector<bool>& windowed, const WindowSpec& window);

}  // namespace headroom::detail
