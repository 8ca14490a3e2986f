// GPT-Neo: GPT-2 with unscaled attention scores and a window in every other layer (Black et al.
// 2021).
#include <algorithm>

#include "../decoder.h"
#include "../family.h"
#include "../gpt.h"

namespace headroom::detail {
namespace {

/// Reads `attention_types` [[pattern, times], …] or its expansion `attention_layers`; saved configs
/// have both.
std::vector<bool> read_local_layers(ConfigReader& config, std::int64_t num_layers) {
  std::vector<std::string> kinds = config.texts("attention_layers");
  const std::vector<std::string> expanded = config.expanded_patterns("attention_types");
  if (kinds.empty()) kinds = expanded;
  std::vector<bool> local;
  local.reserve(kinds.size());
  for (const std::string& kind : kinds) local.push_back(kind == "local");
  if (kinds.empty()) {
    for (std::int64_t layer = 0; layer < num_layers; ++layer) local.push_back(layer % 2 == 1);
  }
  const bool known = std::ranges::all_of(
      kinds, [](const std::string& kind) { return kind == "local" || kind == "global"; });
  if (!known || std::ssize(local) != num_layers) {
    config.fail("attention_types", "does not name global or local for every layer",
                "name num_layers of them");
  }
  return local;
}

void read_gpt_neo(ConfigReader& config, ModelSpec& spec) {
  read_gpt_sizes(config, spec, 2048);
  spec.position.kind = PositionKind::learned;
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  attention.scale = AttentionScale::none;
  attention.softmax = SoftmaxPrecision::float32;
  attention.output_bias = true;
  const WindowSpec window{WindowKind::sliding, config.size_or({"window_size"}, 256)};
  set_windows(stack, read_local_layers(config, stack.num_layers), window);
}

constexpr NameRule kGptNeo[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.attention.q_proj.%"},
    {"decoder.layers.attention.key.%", "h.{}.attn.attention.k_proj.%"},
    {"decoder.layers.attention.value.%", "h.{}.attn.attention.v_proj.%"},
    {"decoder.layers.attention.output.%", "h.{}.attn.attention.out_proj.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::vector<Family> gpt_neo_families() {
  return {{.model_types = {"gpt_neo"},
           .classes = decoder_classes("GPTNeo", {.tied = true}),
           .reader = read_gpt_neo,
           .names = gpt_names(kGptNeo),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
