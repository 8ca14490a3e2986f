// GPT-Neo: GPT-2 without a scale of the scores, every other layer with a window
// (Black et al. 2021).
#include <algorithm>

#include "../decoder.h"
#include "../gpt.h"

namespace headroom::detail {
namespace {

/// `attention_types` [[pattern, times], …] says the same as the list that it expands to,
/// `attention_layers`, which is what is saved beside it.
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
                "name as many as num_layers");
  }
  return local;
}

}  // namespace

void read_gpt_neo(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec language_model;
  language_model.weight = config.flag_or({"tie_word_embeddings"}, true) ? WeightSharing::shared
                                                                        : WeightSharing::separate;
  read_decoder_architecture(config, spec, "GPTNeo", "GPTNeoForCausalLM", language_model);
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

}  // namespace headroom::detail
