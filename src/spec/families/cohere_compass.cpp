// Cohere Compass (North Vision): Command R with a RoPE of each kind of layer, or none, in three
// axes, which are one for text, and Qwen3-VL's tower (transformers, models/cohere_compass).
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "cohere.h"

namespace headroom::detail {
namespace {

/// The RoPE of a kind of layer; none where its entry is null. The class requires the entry.
std::optional<RopeSpec> read_compass_rope(ConfigReader& config, const ModelSpec& spec,
                                          std::string_view layer_type) {
  const ConfigReader ropes = config.object_or_empty("rope_parameters");
  if (ropes.is_null(layer_type)) return std::nullopt;
  if (!ropes.has(layer_type)) {
    config.fail("rope_parameters", fmt::format("lacks {}, a kind of the layers", layer_type),
                "add the RoPE of these layers, or null for none");
  }
  const std::int64_t head_dim = spec.decoder->self_attention.head_dim;
  RopeSpec rope = read_rope_of(config, layer_type, spec.position, head_dim, {});
  if (rope.axes == RopeAxes::sequence) rope.sections = {24, 20, 20};
  rope.axes = RopeAxes::interleaved_sections;  // whatever mrope_interleaved says
  return rope;
}

void read_cohere_compass(ConfigReader& config, ModelSpec& spec) {
  read_cohere_like(config, spec, {.rope = {.by_layer_type = true}, .logit_scale = 1});
  StackSpec& stack = *spec.decoder;
  const WindowSpec window = read_window(config, 4096);
  std::vector<bool> full_layers =
      read_windowed_layers(config, stack.num_layers, [](std::int64_t /*layer*/) { return false; });
  full_layers.flip();
  if (std::ranges::find(full_layers, true) != full_layers.end()) {
    const std::optional<RopeSpec> full = read_compass_rope(config, spec, "full_attention");
    stack.self_attention.rotary = full.has_value();
    if (full) spec.position.rope = *full;
  }
  if (std::ranges::find(full_layers, false) != full_layers.end()) {
    const std::optional<RopeSpec> local = read_compass_rope(config, spec, "sliding_attention");
    // Layers of the other kind have none where this one is the model's.
    if (local && !stack.self_attention.rotary) spec.position.rope = *local;
    vary_layers(stack, full_layers, [&](LayerVariant& variant) {
      variant.self_attention.window = window;
      variant.self_attention.rotary = local.has_value();
      variant.self_attention.rope = local;
    });
  }
  config.ignore({"pooling"});
}

HeadSpec compass_classifier(ConfigReader& config) {
  config.expect_text("pooling", "eos");  // the last token
  return last_token_classifier(config);
}

ModelClasses compass_classes() {
  ModelClasses classes =
      decoder_classes("CohereCompassText", {.tied = true}, "CohereCompassForCausalLM");
  for (ModelClass& one : classes.list) {
    if (one.name.ends_with("ForSequenceClassification")) one.head = compass_classifier;
  }
  return classes;
}

}  // namespace

std::vector<Family> cohere_compass_families() {
  return {{.model_types = {"cohere_compass_text"},
           .classes = compass_classes(),
           .reader = read_cohere_compass,
           .names = llama_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          wrapper_family({.model_types = {"cohere_compass"},
                          .classes = {"CohereCompassForConditionalGeneration"},
                          .bare_classes = {"CohereCompassModel"},
                          .text_type = "cohere_compass_text",
                          .count_towers = read_qwen3_vl_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_qwen_names()})};
}

}  // namespace headroom::detail
