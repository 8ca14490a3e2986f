// Decoders that differ from Llama in few choices: Helium, Code World Model, Jais 2, Ministral,
// IQuest-Coder, NanoChat, Persimmon, SOLAR Pro and the dense model of Youtu-LLM.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>
#include <map>
#include <set>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Helium: Llama with interleaved RoPE, and no bias of the attention's output (Kyutai, Helium 1).
void read_helium(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 4096;
  defaults.norm_eps = 1e-8;
  defaults.rope.theta = 1e5;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::key_for_query_key_value;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
}

/// Code World Model: Llama 3 with windows in three of four layers (Meta, CWM).
void read_cwm(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWindow = 8192;
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e6;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  config.ignore({"attention_bias"});  // the class's attention has no biases
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
  StackSpec& stack = *spec.decoder;
  const WindowSpec window = read_window(config, kWindow);
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers, [](std::int64_t layer) { return layer % 4 != 0; });
  set_windows(stack, windowed, window);
}

/// Jais 2: Llama with LayerNorm, biases, and a plain FFN with a squared ReLU (Inception, Jais 2).
void read_jais2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 8192;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.bias_when_absent = true;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::relu_squared;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, true);
}

/// Ministral: Mistral with windows in some layers (Mistral, Ministral 8B).
void read_ministral(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  const WindowSpec window = read_window(config, 4096);
  const bool has_window = window.kind != WindowKind::none;
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers, [=](std::int64_t /*layer*/) { return has_window; });
  set_windows(stack, windowed, window);
}

/// IQuest-Coder V1: Llama by another name (IQuestLab).
void read_iquestcoder(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
}

/// NanoChat turns each pair the other way, which is linear scaling by -1.
void turn_backwards(const ConfigReader& config, RopeSpec& rope) {
  const bool is_linear = rope.scaling == RopeScalingKind::linear;
  if (!is_linear && rope.scaling != RopeScalingKind::none) {
    config.fail("rope_parameters", "has a kind of scaling that is not supported here",
                "use default or linear");
  }
  rope.factor = is_linear ? -rope.factor : -1;
  rope.scaling = RopeScalingKind::linear;
}

/// NanoChat: norms without weights, also of the embedding and of each head after RoPE, and a plain
/// FFN with a squared ReLU (Karpathy, nanochat).
void read_nanochat(ConfigReader& config, ModelSpec& spec) {
  constexpr double kCap = 15;
  DecoderDefaults defaults;
  defaults.norm.weight = NormWeight::none;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::relu_squared;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  spec.embedding.norm = stack.norm;
  stack.self_attention.query_key_norm =
      QueryKeyNormSpec{stack.norm, QueryKeyNormScope::each_head, QueryKeyNormPlace::after_rotary};
  const double cap = config.number_or({"final_logit_softcapping"},
                                      config.is_null("final_logit_softcapping") ? 0 : kCap);
  if (spec.head.language_model) spec.head.language_model->soft_cap = cap;
  turn_backwards(config, spec.position.rope);
}

/// Persimmon: LayerNorm, also of each head, biases, RoPE on half of each head, and a plain FFN with
/// a squared ReLU (Adept, Persimmon-8B).
void read_persimmon(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 16384;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 25000;
  defaults.rope.partial_rotary_factor = 0.5;
  defaults.bias = BiasRule::all;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::relu_squared;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = true;
  if (config.flag_or({"qk_layernorm"}, true)) {
    stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  }
  config.ignore({"hidden_dropout"});
}

/// Youtu-LLM: the latent attention of DeepSeek V3 with dense networks (Tencent, Youtu-LLM-2B).
void read_youtu(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek_defaults(131072));
  read_latent_attention(config, spec, {});
  config.ignore({"embedding_initializer_range", "mlp_bias"});
}

/// Layers that the list at `key`, or the class without one, names. The class never reaches those
/// that the stack lacks.
std::set<std::int64_t> read_layer_numbers(ConfigReader& config, std::string_view key,
                                          const std::vector<std::int64_t>& of_class,
                                          std::int64_t num_layers) {
  if (!config.has(key)) config.note_of_class(key, fmt::format("[{}]", fmt::join(of_class, ", ")));
  const std::vector<std::int64_t> named = config.has(key) ? config.counts(key) : of_class;
  std::set<std::int64_t> layers;
  for (const std::int64_t layer : named) {
    if (layer < num_layers) layers.insert(layer);
  }
  return layers;
}

/// Weight of the hidden states that are kept: the second of bskcn_tv, as the first is that of
/// training.
double read_connection_weight(ConfigReader& config) {
  constexpr double kOfClass = 0.8;
  const std::vector<double> weights = config.numbers("bskcn_tv");
  if (weights.empty()) return kOfClass;
  if (weights.size() != 2) {
    config.fail("bskcn_tv", "is not a list of two weights",
                "write those of training and inference");
  }
  return weights.back();
}

/// Layers in front of which hidden states are kept, and those in front of which the last ones kept
/// are mixed in, with the key that names these.
struct ConnectedLayers {
  std::string_view key;
  std::set<std::int64_t> kept;
  std::set<std::int64_t> mixed;
};

/// Reads block connections, by the layer that they end in front of. Source: SolarModel.forward and
/// SolarConfig (vLLM, solar.py; Upstage, SOLAR Pro).
std::map<std::int64_t, std::vector<BlockConnection>> read_connections(ConfigReader& config,
                                                                      std::int64_t num_layers) {
  const std::array<ConnectedLayers, 2> pairs{
      ConnectedLayers{"bskcn_3",
                      read_layer_numbers(config, "bskcn_1", {12, 20, 32, 44}, num_layers),
                      read_layer_numbers(config, "bskcn_3", {16, 24, 36, 48}, num_layers)},
      ConnectedLayers{"bskcn_4", read_layer_numbers(config, "bskcn_2", {20, 32}, num_layers),
                      read_layer_numbers(config, "bskcn_4", {28, 40}, num_layers)}};
  const double weight = read_connection_weight(config);
  std::map<std::int64_t, std::vector<BlockConnection>> connections;
  for (const ConnectedLayers& pair : pairs) {
    for (const std::int64_t layer : pair.mixed) {
      const auto behind = pair.kept.upper_bound(layer);
      if (behind == pair.kept.begin()) {
        config.fail(pair.key, fmt::format("layer {} has no hidden states to mix in", layer),
                    "write layers that are not before the first whose hidden states are kept");
      }
      connections[layer].push_back({*std::prev(behind), weight});
    }
  }
  return connections;
}

/// SOLAR Pro: Llama with block connections. It has no window, whatever sliding_window says (vLLM,
/// solar.py; Upstage, SOLAR Pro).
void read_solar(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  read_decoder(config, spec, defaults);
  config.ignore({"sliding_window"});
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  for (const auto& [layer, connections] : read_connections(config, stack.num_layers)) {
    stack.variant_of_layer.resize(static_cast<std::size_t>(stack.num_layers));
    LayerVariant variant{stack.self_attention, stack.ffn};
    variant.self_attention.connections = connections;
    stack.variants.push_back(std::move(variant));
    stack.variant_of_layer[static_cast<std::size_t>(layer)] = stack.variants.size();
  }
}

constexpr NameRule kNanochat[] = {
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.fc2.%"},
};

constexpr NameRule kPersimmon[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.query_key_value.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.query_key_value.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.query_key_value.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.dense.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.dense_h_to_4h.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

}  // namespace

std::vector<Family> llama_clones_families() {
  constexpr std::string_view kNoGguf = "llama.cpp does not support this architecture";
  return {{.model_types = {"helium"},
           .classes = llama_classes("Helium"),
           .reader = read_helium,
           .names = llama_names(),
           .gguf = None(kNoGguf)},
          {.model_types = {"cwm"},
           .classes = llama_classes("Cwm"),
           .reader = read_cwm,
           .names = llama_names(),
           .gguf = None(kNoGguf)},
          {.model_types = {"jais2"},
           .classes = llama_classes("Jais2"),
           .reader = read_jais2,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "jais2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
                              .flags = {{"blk.0.attn_q.bias", "attention_bias"},
                                        {"blk.0.ffn_down.bias", "mlp_bias"}},
                              .head_dim = GgufHeadDim::always}})},
          {.model_types = {"ministral"},
           .classes = llama_classes("Ministral"),
           .reader = read_ministral,
           .names = llama_names(),
           .gguf = None("llama.cpp stores it under the name of Llama")},
          {.model_types = {"iquestcoder"},
           .classes = either_of(llama_classes("IQuestCoder"), llama_classes("Llama")),
           .reader = read_iquestcoder,
           .names = llama_names(),
           .gguf = None("llama.cpp stores it under the name of Llama")},
          {.model_types = {"nanochat"},
           .classes = llama_classes("NanoChat"),
           .reader = read_nanochat,
           .names = llama_names({kNanochat}),
           .gguf = None(kNoGguf)},
          {.model_types = {"persimmon"},
           .classes = llama_classes("Persimmon"),
           .reader = read_persimmon,
           .names = llama_names({kPersimmon}),
           .gguf = None(kNoGguf)},
          {.model_types = {"solar"},
           .classes = llama_classes("Solar"),
           .reader = read_solar,
           .names = llama_names(),
           .gguf = None(kNoGguf)},
          {.model_types = {"youtu"},
           .classes = decoder_classes("Youtu", {.tied = true, .float32_logits = true}),
           .reader = read_youtu,
           .names = deepseek_names(),
           .gguf = None("llama.cpp stores it under the name of DeepSeek V2")}};
}

}  // namespace headroom::detail
