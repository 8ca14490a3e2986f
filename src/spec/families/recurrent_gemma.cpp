// RecurrentGemma: two recurrent blocks of Griffin, then attention within a window (arXiv
// 2402.19427, 2404.07839; transformers, models/recurrent_gemma).
#include <cmath>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// The layers with attention: `block_types` over and over.
std::vector<bool> read_griffin_attention(ConfigReader& config, std::int64_t num_layers) {
  std::vector<std::string> types = config.texts("block_types");
  if (types.empty()) types = {"recurrent", "recurrent", "attention"};
  std::vector<bool> attends;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const std::string& type = types[static_cast<std::size_t>(layer) % types.size()];
    if (type != "attention" && type != "recurrent") {
      config.fail("block_types", "names a block that is neither recurrent nor attention",
                  "use recurrent and attention");
    }
    attends.push_back(type == "attention");
  }
  return attends;
}

GatedRecurrenceSpec read_griffin_recurrence(ConfigReader& config, const ModelSpec& spec) {
  const StackSpec& stack = *spec.decoder;
  GatedRecurrenceSpec recurrence;
  recurrence.width = config.size_or({"lru_width"}, spec.hidden_size);
  recurrence.conv_kernel_dim = config.size_or({"conv1d_width"}, 4);
  recurrence.activation = stack.ffn.activation;
  if (recurrence.width % stack.self_attention.num_attention_heads != 0) {
    config.fail("lru_width", "is not a multiple of num_attention_heads",
                "use a multiple of num_attention_heads");
  }
  return recurrence;
}

/// The factor of the embeddings, which the class keeps in bfloat16: √d with 8 significant bits.
double embedding_scale(std::int64_t hidden_size) {
  constexpr double kSteps = 256;  // 2⁸, of a significand in [0.5, 1)
  int exponent = 0;
  const double significand = std::frexp(std::sqrt(static_cast<double>(hidden_size)), &exponent);
  return std::ldexp(std::nearbyint(significand * kSteps) / kSteps, exponent);
}

void read_recurrent_gemma(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 8192;
  defaults.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  defaults.activation = ActivationKind::gelu_tanh;
  defaults.bias = BiasRule::key_for_query_key_value;
  read_decoder(config, spec, defaults);
  // The class of transformers 5.16 rotates whole heads, whatever partial_rotary_factor says.
  if (spec.position.rope.scaling != RopeScalingKind::none) {
    config.fail("rope_scaling", "is nothing that RecurrentGemma has", "leave it out");
  }
  spec.position.rope.rotary_dim = 0;
  spec.embedding.scale = EmbeddingScale::fixed;
  spec.embedding.fixed_scale = embedding_scale(spec.hidden_size);
  const double cap = config.number_or({"logits_soft_cap"}, 30);
  if (spec.head.language_model) spec.head.language_model->soft_cap = cap;
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = true;
  stack.ffn.intermediate_size /= 2;  // the config counts gate and up together
  if (stack.ffn.intermediate_size == 0) {
    config.fail("intermediate_size", "has no width for each half", "use at least 2");
  }
  stack.self_attention.output_bias = true;
  stack.self_attention.window = {WindowKind::sliding,
                                 config.size_or({"attention_window_size"}, 2048)};
  const GatedRecurrenceSpec recurrence = read_griffin_recurrence(config, spec);
  vary_layers(stack, read_griffin_attention(config, stack.num_layers), [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::gated_recurrence;
    variant.self_attention.gated_recurrence = recurrence;
    variant.self_attention.window = {};
  });
  config.expect_flag("embeddings_scale_by_sqrt_dim", true);
  config.ignore({"w_init_variance_scale", "final_w_init_variance_scale"});
}

constexpr NameRule kRecurrentGemma[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.temporal_pre_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.temporal_block.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.temporal_block.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.temporal_block.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.temporal_block.o_proj.%"},
    {"decoder.layers.mixer.x.%", "layers.{}.temporal_block.linear_x.%"},
    {"decoder.layers.mixer.gate.%", "layers.{}.temporal_block.linear_y.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.temporal_block.linear_out.%"},
    {"decoder.layers.mixer.convolution.%", "layers.{}.temporal_block.conv_1d.%"},
    {"decoder.layers.mixer.input_gate.%", "layers.{}.temporal_block.rg_lru.input_gate_%"},
    {"decoder.layers.mixer.recurrent_gate.%", "layers.{}.temporal_block.rg_lru.recurrent_gate_%"},
    {"decoder.layers.mixer.decay", "layers.{}.temporal_block.rg_lru.recurrent_param"},
    {"decoder.layers.mlp_norm.%", "layers.{}.channel_pre_norm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp_block.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp_block.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp_block.down_proj.%"},
    {"decoder.final_norm.%", "final_norm.%"},
};

}  // namespace

std::vector<Family> recurrent_gemma_families() {
  return {{.model_types = {"recurrent_gemma"},
           .classes = decoder_classes("RecurrentGemma", {.tied = true, .float32_logits = true}),
           .reader = read_recurrent_gemma,
           .names = llama_names({kRecurrentGemma}),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
