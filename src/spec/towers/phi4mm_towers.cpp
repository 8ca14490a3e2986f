// Phi-4 multimodal as Microsoft publishes it (modeling_phi4mm.py of Phi-4-multimodal-instruct): the
// towers' settings, and adapters (LoRA, arXiv 2106.09685) on the text model's linear layers: one
// for images, one for speech.
#include <array>

#include "image_towers.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// A linear layer of the text model with an adapter.
struct AdaptedLayer {
  std::string_view name;
  std::int64_t in;
  std::int64_t out;
  WeightRole role;
};

std::array<AdaptedLayer, 4> adapted_layers(const ConfigReader& lora, const ModelSpec& spec) {
  const AttentionSpec& attention = spec.decoder->self_attention;
  const std::int64_t inner = spec.decoder->ffn.intermediate_size;
  const std::int64_t query = product(lora, "r", attention.num_attention_heads, attention.head_dim);
  const std::int64_t key = product(lora, "r", attention.num_key_value_heads, attention.head_dim);
  return {{{"attention.qkv", spec.hidden_size, query + 2 * key, WeightRole::attention},
           {"attention.output", query, spec.hidden_size, WeightRole::attention},
           {"mlp.gate_up", spec.hidden_size, product(lora, "r", 2, inner), WeightRole::mlp},
           {"mlp.down", inner, spec.hidden_size, WeightRole::mlp}}};
}

/// Requires the adapter to be on all linear layers: one of the patterns of Microsoft's config.
void require_all_layers(ConfigReader& lora) {
  constexpr bool kAll = true;
  (void)lora.choice_or<bool>(
      {"layer"},
      {{R"(layers.*((self_attn\.(qkv_proj|o_proj))|(mlp\.(gate_up|down)_proj)))", kAll},
       {R"(((layers.*self_attn\.(qkv|o)_proj)|(layers.*mlp\.(gate_up|down)_proj)))", kAll}},
      kAll);
}

/// The object at `key`, which its class requires.
ConfigReader required_object(ConfigReader& config, std::string_view key) {
  if (auto present = config.object(key)) return *std::move(present);
  config.fail(key, "is missing, and its class requires it",
              "take the config.json that lies beside the weights");
}

/// Adds the adapter `path` that `key` describes: [r, in] and [out, r] of each linear layer.
void count_adapter(ConfigReader& config, std::string_view key, const std::string& path,
                   ModelSpec& spec) {
  ConfigReader lora = required_object(config, key);
  const std::int64_t rank = lora.size({"r"});
  require_all_layers(lora);
  lora.ignore({"lora_alpha", "dp"});
  TowerWeights adapter(spec, ModelPart::adapter);
  const std::int64_t layers = spec.decoder->num_layers;
  for (const AdaptedLayer& layer : adapted_layers(lora, spec)) {
    const std::string name = path + ".layers." + std::string(layer.name);
    adapter.linear_if(false, name + ".lora_A", layer.in, rank, layer.role, layers);
    adapter.linear_if(false, name + ".lora_B", rank, layer.out, layer.role, layers);
  }
  lora.finish();
}

/// Settings of the audio tower that choose other layers than those counted.
void require_counted_conformer(ConfigReader& audio) {
  audio.expect_text("input_layer", "nemo_conv");
  audio.expect_flag("bias_in_glu", true);
  audio.expect_flag("batch_norm", false);
  audio.expect_flag("cnn_layer_norm", true);
  audio.expect_number("ext_pw_kernel_size", 1);
  audio.ignore({"causal", "activation_checkpointing", "encoder_embedding_config"});
}

void read_audio_processor(ConfigReader& config, ModelSpec& spec) {
  ConfigReader processor = required_object(config, "audio_processor");
  processor.expect_text("name", "cascades");
  ConfigReader audio = processor.object_or_empty("config");
  require_counted_conformer(audio);
  count_phi4_audio(audio, spec);
  processor.finish();
}

void require_audio_embedding(ConfigReader& embedding) {
  auto audio = embedding.object("audio_embd_layer");
  if (!audio) return;
  audio->expect_text("embedding_cls", "audio");
  audio->expect_text("projection_cls", "mlp");
  audio->expect_flag("use_qformer", false);
  audio->expect_flag("use_conv_downsample", false);
  audio->expect_number("downsample_rate", 1);
  audio->ignore({"compression_rate", "enable_gradient_checkpointing"});
  audio->finish();
}

}  // namespace

void read_phi4mm_towers(ConfigReader& config, ModelSpec& spec) {
  ConfigReader embedding = required_object(config, "embd_layer");
  embedding.expect_text("embedding_cls", "image_audio");
  ConfigReader images = embedding.object_or_empty("image_embd_layer");
  read_phi4mm_vision_tower(config, images, spec);
  require_audio_embedding(embedding);
  embedding.finish();
  read_audio_processor(config, spec);
  count_adapter(config, "vision_lora", "images", spec);
  count_adapter(config, "speech_lora", "speech", spec);
  spec.assumptions.emplace_back(
      "its two adapters are for prompts with images and with speech: a text uses neither");
}

}  // namespace headroom::detail
