// Gemma 3n and Gemma 4: per-layer embeddings, layers that share K and V with an earlier one, larger
// heads in full layers, experts beside the dense network (Google, model cards of gemma-3n-E4B and
// gemma-4-26B-A4B; transformers, models/gemma3n and models/gemma4).
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "../decoder.h"
#include "../family.h"
#include "../towers/projected_inputs.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "gemma4_names.h"
#include "number_text.h"

namespace headroom::detail {
namespace {

DecoderDefaults gemma4_defaults() {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 131072;
  defaults.head_dim = 256;
  defaults.activation = ActivationKind::gelu_tanh;
  defaults.rope.by_layer_type = true;
  return defaults;
}

/// Choices of both: norms on both sides, a norm of each head of Q, K and V, scores without a scale.
void read_base(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults) {
  read_decoder(config, spec, defaults);
  spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::sandwich;
  AttentionSpec& attention = stack.self_attention;
  attention.scale = AttentionScale::none;
  attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  attention.value_norm = stack.norm;
  attention.value_norm->weight = NormWeight::none;
}

void read_soft_cap(ConfigReader& config, ModelSpec& spec, double when_absent) {
  const double cap = config.number_or({"final_logit_softcapping"}, when_absent);
  if (spec.head.language_model) spec.head.language_model->soft_cap = cap;
}

void read_per_layer_inputs(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = config.count_or({"hidden_size_per_layer_input"}, 256);
  const std::int64_t rows = config.size_or({"vocab_size_per_layer_input"}, 262144);
  if (width > 0) spec.embedding.per_layer = PerLayerInputSpec{rows, width};
}

/// Marks layers before the last `num_kv_shared_layers`.
std::vector<bool> read_own_key_values(ConfigReader& config, std::int64_t num_layers,
                                      std::int64_t when_absent) {
  const std::int64_t shared = config.count_or({"num_kv_shared_layers"}, when_absent);
  if (shared >= num_layers) {
    config.fail("num_kv_shared_layers", "leaves no layer with keys of its own",
                "write a number below num_hidden_layers");
  }
  std::vector<bool> own;
  for (std::int64_t layer = 0; layer < num_layers; ++layer)
    own.push_back(layer < num_layers - shared);
  return own;
}

/// Size and number of the key-value heads of full layers.
using FullHeads = std::pair<std::int64_t, std::int64_t>;

/// per_layer_config, one object per full layer (transformers 5.16), in the place of the global_
/// keys; what an object lacks is that of the other layers.
FullHeads read_listed_heads(ConfigReader& config, ConfigReader& by_layer,
                            const std::vector<bool>& windowed, const AttentionSpec& usual) {
  std::vector<bool> unlisted(windowed.size(), true);
  std::set<FullHeads> heads;
  for (const std::string& layer : by_layer.keys()) {
    auto own = by_layer.object(layer);
    const std::int64_t number = integer_of(layer).value_or(-1);
    if (number < 0 || number >= std::ssize(windowed)) {
      by_layer.fail(layer, "is no layer", "use numbers from 0 to num_hidden_layers - 1");
    }
    unlisted[static_cast<std::size_t>(number)] = false;
    heads.insert({own->size_or({"head_dim"}, usual.head_dim),
                  own->size_or({"num_key_value_heads"}, usual.num_key_value_heads)});
    own->finish();
  }
  if (unlisted != windowed || heads.size() != 1) {
    config.fail("per_layer_config", "does not give all layers with full attention the same heads",
                "list those layers, and no others, with the same values");
  }
  return *heads.begin();
}

/// Heads of the full layers: per_layer_config, or the global_ keys of the published files.
void read_full_heads(ConfigReader& config, const std::vector<bool>& windowed, AttentionSpec& full) {
  FullHeads heads{config.size_or({"global_head_dim"}, 512), full.num_key_value_heads};
  const auto global = config.optional_size({"num_global_key_value_heads"});
  if (global && full.value_is_key) heads.second = *global;
  if (auto by_layer = config.object("per_layer_config")) {
    heads = read_listed_heads(config, *by_layer, windowed, full);
  }
  full.head_dim = full.value_head_dim = heads.first;
  full.num_key_value_heads = heads.second;
}

/// RoPE of both kinds of layers. Full layers rotate a quarter of their pairs by default.
void read_ropes(ConfigReader& config, ModelSpec& spec, AttentionSpec& full) {
  RopeSpec& local = spec.position.rope;
  local = read_rope_of(config, "sliding_attention", spec.position,
                       spec.decoder->self_attention.head_dim, local);
  RopeSpec by_default;
  by_default.theta = 1e6;
  by_default.rotated_pairs = full.head_dim / 8;
  full.rope = read_rope_of(config, "full_attention", spec.position, full.head_dim, by_default);
}

void read_gemma4_experts(ConfigReader& config, StackSpec& stack) {
  const bool routed = config.flag_or({"enable_moe_block"}, false);
  if (!routed) {
    config.ignore({"num_experts", "top_k_experts", "moe_intermediate_size"});
    return;
  }
  ExpertsSpec experts;
  experts.num_experts = config.size({"num_experts"});
  experts.num_experts_per_tok = config.size({"top_k_experts"});
  experts.intermediate_size = config.size({"moe_intermediate_size"});
  experts.normalise = true;
  experts.beside_dense = true;
  stack.ffn.experts = experts;
}

/// Windows, shared keys and the sizes of full layers.
void read_gemma4_layers(ConfigReader& config, ModelSpec& spec, std::int64_t window_when_absent) {
  StackSpec& stack = *spec.decoder;
  const auto rule = [](std::int64_t layer) { return (layer + 1) % 6 != 0; };
  std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  windowed.back() = false;  // whatever layer_types says, as in the class
  const WindowSpec window = read_required_window(config, window_when_absent);
  const bool value_is_key = config.flag_or({"attention_k_eq_v"}, false);
  stack.layer_scalar = true;
  AttentionSpec full = stack.self_attention;
  full.value_is_key = value_is_key;
  read_full_heads(config, windowed, full);
  read_ropes(config, spec, full);
  stack.self_attention.window = window;
  // Tokens of an image see each other in windowed layers only.
  if (config.is_text("use_bidirectional_attention", "vision")) {
    stack.self_attention.lookahead = Lookahead::image_in_window;
  } else if (config.is_text("use_bidirectional_attention", "all")) {
    config.fail("use_bidirectional_attention", "\"all\" is not supported", "use a causal model");
  }
  vary_layers(stack, windowed, [&](LayerVariant& variant) { variant.self_attention = full; });
  const std::vector<bool> own = read_own_key_values(config, stack.num_layers, 0);
  const bool wide = config.flag_or({"use_double_wide_mlp"}, false);
  vary_layers(stack, own, [&](LayerVariant& variant) {
    variant.self_attention.shares_key_values = true;
    if (wide) variant.ffn.intermediate_size *= 2;
  });
}

void read_gemma4_text(ConfigReader& config, ModelSpec& spec) {
  read_base(config, spec, gemma4_defaults());
  read_soft_cap(config, spec, 0);
  read_per_layer_inputs(config, spec);
  read_gemma4_experts(config, *spec.decoder);
  read_gemma4_layers(config, spec, 512);
}

/// Gemma 4 without encoders: its text model has neither per-layer inputs nor experts.
void read_gemma4_unified_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = gemma4_defaults();
  defaults.max_position_embeddings = 262144;
  read_base(config, spec, defaults);
  read_soft_cap(config, spec, 0);
  config.ignore({"vocab_size_per_layer_input"});
  read_gemma4_layers(config, spec, 1024);
}

void read_altup(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  constexpr std::int64_t kMostInputs = 4;  // gemma4_names.cpp names their projections
  AltUpSpec altup;
  altup.inputs = config.size_or({"altup_num_inputs"}, kMostInputs);
  altup.active = config.count_or({"altup_active_idx"}, 0);
  altup.scales_output = config.flag_or({"altup_correct_scale"}, true);
  if (!altup.scales_output) {  // the class has the vector, and leaves it unread
    spec.counted_only.push_back({"layers.altup.output_scale",
                                 {spec.hidden_size},
                                 WeightRole::norm,
                                 stack.num_layers,
                                 ModelPart::text,
                                 CountedUse::loaded});
  }
  if (altup.inputs > kMostInputs || altup.active >= altup.inputs) {
    config.fail("altup_num_inputs", "is above 4, or not above altup_active_idx",
                "use at most 4 inputs, and the index of one of them");
  }
  config.ignore({"altup_coef_clip"});  // in training only
  stack.altup = altup;
  stack.laurel_rank = config.size_or({"laurel_rank"}, 64);
}

/// The argument at which the normal distribution reaches `share`, by bisection.
double normal_quantile(double share) {
  double low = -10;
  double high = 10;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    const double reached = std::erfc(-middle / std::numbers::sqrt2) / 2;
    (reached < share ? low : high) = middle;
  }
  return low;
}

/// Layers that zero the lower gates: activation_sparsity_pattern is the share of each layer, by
/// default 0.95 in the first 10 layers.
void read_sparsity(ConfigReader& config, StackSpec& stack) {
  constexpr std::int64_t kSparseLayers = 10;
  std::vector<double> shares = config.numbers("activation_sparsity_pattern");
  if (shares.empty()) {
    const bool deep = stack.num_layers > kSparseLayers;
    for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
      shares.push_back(deep && layer < kSparseLayers ? 0.95 : 0);
    }
  }
  if (std::ssize(shares) != stack.num_layers) {
    config.fail("activation_sparsity_pattern", "does not have one number for every layer",
                "write num_hidden_layers of them");
  }
  for (const double share : std::set<double>(shares.begin(), shares.end())) {
    if (share <= 0) continue;
    std::vector<bool> others;
    others.reserve(shares.size());
    for (const double own : shares) others.push_back(own != share);
    const double cutoff = normal_quantile(share);
    vary_layers(stack, others, [&](LayerVariant& variant) { variant.ffn.gate_cutoff = cutoff; });
  }
}

/// RoPE of the windowed layers.
RopeSpec read_local_rope(ConfigReader& config, const ModelSpec& spec) {
  RopeSpec local;
  local.theta = config.number_or({"rope_local_base_freq"}, local.theta);
  return read_rope_of(config, "sliding_attention", spec.position,
                      spec.decoder->self_attention.head_dim, local);
}

void read_gemma3n_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = gemma4_defaults();
  defaults.max_position_embeddings = 32768;
  defaults.num_key_value_heads = 2;
  defaults.rope.theta = 1e6;
  const std::vector<std::int64_t> widths = config.list_of_counts("intermediate_size");
  if (!widths.empty()) defaults.intermediate_size = widths.front();
  if (std::ranges::any_of(widths, [&](std::int64_t width) { return width != widths.front(); })) {
    config.fail("intermediate_size", "differs between layers", "use one size for all layers");
  }
  read_base(config, spec, defaults);
  read_soft_cap(config, spec, 30);
  read_per_layer_inputs(config, spec);
  if (!spec.embedding.per_layer) {
    config.fail("hidden_size_per_layer_input",
                "is 0, but every layer of Gemma 3n has such an input",
                "write a width of at least 1");
  }
  spec.position.rope = read_rope_of(config, "full_attention", spec.position,
                                    spec.decoder->self_attention.head_dim, spec.position.rope);
  StackSpec& stack = *spec.decoder;
  const auto rule = [](std::int64_t layer) { return (layer + 1) % 5 != 0; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  const AttentionSpec full = stack.self_attention;
  stack.self_attention.window = read_required_window(config, 512);
  stack.self_attention.rope = read_local_rope(config, spec);
  vary_layers(stack, windowed, [&](LayerVariant& variant) { variant.self_attention = full; });
  vary_layers(stack, read_own_key_values(config, stack.num_layers, 15),
              [](LayerVariant& variant) { variant.self_attention.shares_key_values = true; });
  read_altup(config, spec);
  read_sparsity(config, stack);
}

}  // namespace

std::vector<Family> gemma4_families() {
  constexpr DecoderHead kTiedHead{.tied = true, .float32_logits = true};
  return {
      {.model_types = {"gemma3n_text"},
       .classes = either_of(decoder_classes("Gemma3n", kTiedHead), one_class("Gemma3nTextModel")),
       .reader = read_gemma3n_text,
       .names = gemma4_names(),
       .gguf = gemma3n_form()},
      {.model_types = {"gemma4_text"},
       .classes = either_of(decoder_classes("Gemma4", kTiedHead), one_class("Gemma4TextModel")),
       .reader = read_gemma4_text,
       .names = gemma4_names(),
       .gguf = gemma4_form()},
      {.model_types = {"gemma4_unified_text"},
       .classes = decoder_classes("Gemma4Unified", kTiedHead),
       .reader = read_gemma4_unified_text,
       .names = gemma4_names(),
       .gguf = None("llama.cpp stores it under the name of Gemma 4")},
      wrapper_family({.model_types = {"gemma4_unified"},
                      .classes = {"Gemma4UnifiedForConditionalGeneration"},
                      .bare_classes = {"Gemma4UnifiedModel"},
                      .text_type = "gemma4_unified_text",
                      .count_towers = count_gemma4_unified_towers,
                      .tying = HeadTying::whole_else_tied,
                      .absent_tower = AbsentTower::none}),
      wrapper_family({.model_types = {"gemma3n"},
                      .classes = {"Gemma3nForConditionalGeneration"},
                      .bare_classes = {"Gemma3nModel"},
                      .text_type = "gemma3n_text",
                      .count_towers = read_gemma3n_towers,
                      .tying = HeadTying::whole_else_tied,
                      .names = wrapped_gemma3n_names()}),
      wrapper_family({.model_types = {"gemma4"},
                      .classes = {"Gemma4ForConditionalGeneration"},
                      .bare_classes = {"Gemma4Model"},
                      .text_type = "gemma4_text",
                      .count_towers = read_gemma4_tower,
                      .tying = HeadTying::whole_else_tied,
                      .names = wrapped_gemma4_names(),
                      .absent_tower = AbsentTower::none})};
}

}  // namespace headroom::detail
