// Step 3.5, and Step 3.7 with a vision tower: windowed layers with more heads and a RoPE of their
// own, a gate on each head, sigmoid routing beside a shared expert (StepFun, Step-3.5-Flash;
// transformers, models/step3p7). Step-3, with queries of low rank (arXiv 2507.19427).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "../decoder.h"
#include "../family.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "number_text.h"

namespace headroom::detail {
namespace {

/// The first `num_layers` entries of a list, behind which may be those of layers for multi-token
/// prediction; empty if it is absent.
template <class Value>
std::vector<Value> values_of_layers(const ConfigReader& config, std::string_view key,
                                    std::vector<Value> values, std::int64_t num_layers) {
  if (values.empty()) return values;
  if (std::ssize(values) < num_layers) {
    config.fail(key, fmt::format("has {} entries for {} layers", values.size(), num_layers),
                "write one for each of num_hidden_layers");
  }
  values.resize(static_cast<std::size_t>(num_layers));
  return values;
}

std::vector<bool> read_full_step_layers(ConfigReader& config, std::int64_t num_layers) {
  const auto types =
      values_of_layers(config, "layer_types", config.texts("layer_types"), num_layers);
  std::vector<bool> full(static_cast<std::size_t>(num_layers), true);
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    full[layer] = types[layer] == "full_attention";
    if (full[layer] || types[layer] == "sliding_attention") continue;
    config.fail("layer_types", fmt::format("\"{}\" is not supported", types[layer]),
                "use full_attention or sliding_attention");
  }
  return full;
}

/// The layers with experts that moe_layers_enum lists, "3,4,5"; `absent` if it lists none.
std::vector<bool> read_listed_step_layers(ConfigReader& config, std::vector<bool> absent) {
  const std::string listed = config.text_or({"moe_layers_enum"}, "");
  if (listed.empty()) return absent;
  std::vector<bool> sparse(absent.size(), false);
  for (std::size_t begin = 0; begin < listed.size();) {
    const std::size_t end = std::min(listed.find(',', begin), listed.size());
    const std::string word = listed.substr(begin, end - begin);
    const bool is_number = !word.empty() && word.size() < 6 &&
                           std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) config.fail("moe_layers_enum", "is no list of layers", "write \"3,4,5\"");
    const auto layer = static_cast<std::size_t>(std::stoul(word));
    if (layer < sparse.size()) sparse[layer] = true;
    begin = end + 1;
  }
  return sparse;
}

std::vector<bool> read_sparse_step_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::int64_t first_sparse = config.count_or({"first_k_dense_replace"}, 3);
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) sparse.push_back(layer >= first_sparse);
  const auto types =
      values_of_layers(config, "mlp_layer_types", config.texts("mlp_layer_types"), num_layers);
  if (types.empty()) return read_listed_step_layers(config, std::move(sparse));
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    sparse[layer] = types[layer] == "sparse";
    if (sparse[layer] || types[layer] == "dense") continue;
    config.fail("mlp_layer_types", fmt::format("\"{}\" is not supported", types[layer]),
                "use sparse or dense");
  }
  config.ignore({"moe_layers_enum"});
  return sparse;
}

/// The values of a list for the layers of a kind, which must agree; `absent` without the list.
double value_of_kind(const ConfigReader& config, std::string_view key,
                     const std::vector<double>& values, const std::vector<bool>& is_kind,
                     double absent) {
  std::optional<double> found;
  for (std::size_t layer = 0; layer < values.size(); ++layer) {
    if (!is_kind[layer]) continue;
    if (found && *found != values[layer]) {
      config.fail(key, "differs between layers of a kind", "write one value for each kind");
    }
    found = values[layer];
  }
  return found.value_or(absent);
}

/// RoPE of the full layers is the model's; that of the windowed ones has no scaling.
void read_step_ropes(ConfigReader& config, ModelSpec& spec, const std::vector<bool>& full,
                     RopeSpec& windowed) {
  const std::int64_t num_layers = spec.decoder->num_layers;
  const std::int64_t head_dim = spec.decoder->self_attention.head_dim;
  std::vector<double> thetas;
  if (config.is_list("rope_theta")) thetas = config.numbers("rope_theta");
  thetas = values_of_layers(config, "rope_theta", std::move(thetas), num_layers);
  const auto partial = values_of_layers(config, "partial_rotary_factors",
                                        config.numbers("partial_rotary_factors"), num_layers);
  std::vector<bool> sliding = full;
  sliding.flip();
  const auto set = [&](RopeSpec& rope, const std::vector<bool>& kind) {
    rope.theta = value_of_kind(config, "rope_theta", thetas, kind, rope.theta);
    const double share = value_of_kind(config, "partial_rotary_factors", partial, kind, 1);
    if (share <= 0 || share > 1) {
      config.fail("partial_rotary_factors", fmt::format("{} is not a fraction of a head", share),
                  "write numbers above 0 and at most 1");
    }
    rope.rotary_dim =
        share == 1 ? 0 : static_cast<std::int64_t>(share * static_cast<double>(head_dim));
  };
  windowed.theta = spec.position.rope.theta;
  set(spec.position.rope, full);
  set(windowed, sliding);
  spec.position.rope =
      read_rope_of(config, "full_attention", spec.position, head_dim, spec.position.rope);
  windowed = read_rope_of(config, "sliding_attention", spec.position, head_dim, windowed);
}

std::int64_t read_windowed_step_heads(ConfigReader& config, std::int64_t heads) {
  std::int64_t windowed = config.size_or({"num_sliding_attention_heads"}, heads);
  auto other = config.object("attention_other_setting");
  if (!other) return windowed;
  windowed = other->size_or({"num_attention_heads"}, windowed);
  other->expect_text("attention_type", "sliding_attention");
  other->ignore({"num_attention_groups", "head_dim", "true_head_dim"});
  other->finish();
  return windowed;
}

ExpertsSpec read_step_experts(ConfigReader& config) {
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class(
      {"moe_num_experts", "n_routed_experts", "num_local_experts", "num_experts"}, 288);
  experts.num_experts_per_tok = config.size_or_of_class({"moe_top_k", "num_experts_per_tok"}, 8);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 1280);
  experts.shared_intermediate_size =
      config.size_or_of_class({"share_expert_dim", "share_expert_dims"}, 1280);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.normalise = true;
  experts.scaling_factor = config.number_or({"moe_router_scaling_factor"}, 1);
  config.expect_text("moe_router_activation", "sigmoid");
  config.expect_text("scoring_func", "sigmoid");
  config.expect_number("n_shared_experts", 1);
  config.expect_flag("use_moe_router_bias", true);
  config.expect_flag("norm_expert_weight", true);
  config.expect_flag("use_moe", true);
  config.ignore({"need_fp32_gate", "moe_every_n_layer", "moe_layer_offset"});
  return experts;
}

/// A limit of each layer's activations; 0 is none.
std::vector<double> read_limits(ConfigReader& config, std::string_view key,
                                std::int64_t num_layers) {
  std::vector<double> limits = values_of_layers(config, key, config.numbers(key), num_layers);
  if (limits.empty()) return std::vector<double>(static_cast<std::size_t>(num_layers), 0);
  if (std::ranges::any_of(limits, [](double limit) { return limit < 0; })) {
    config.fail(key, "has a limit below 0", "write 0 for a layer without one");
  }
  return limits;
}

/// per_layer_config, which the class reads, repeats the heads of layers with a window.
void expect_heads_of_layers(ConfigReader& config, const StackSpec& stack) {
  auto layers = config.object("per_layer_config");
  if (!layers) return;
  for (const std::string& key : layers->keys()) {
    const std::int64_t layer = integer_of(key).value_or(-1);
    if (layer < 0 || layer >= stack.num_layers) {
      layers->fail(key, "is not a layer", "use numbers below num_hidden_layers");
    }
    ConfigReader own = layers->object_or_empty(key);
    own.expect_number(
        "num_attention_heads",
        static_cast<double>(stack.attention_of(stack.variant(layer)).num_attention_heads));
    own.finish();
  }
  layers->finish();
}

/// Limits of the routed experts, and of the shared expert or the dense network.
void read_activation_limits(ConfigReader& config, StackSpec& stack) {
  using Limits = std::pair<double, double>;
  const auto routed = read_limits(config, "swiglu_limits", stack.num_layers);
  const auto shared = read_limits(config, "swiglu_limits_shared", stack.num_layers);
  std::vector<Limits> limits;
  for (std::size_t i = 0; i < routed.size(); ++i) limits.emplace_back(routed[i], shared[i]);
  for (const Limits& kind : std::set<Limits>(limits.begin(), limits.end())) {
    if (kind == Limits{}) continue;
    std::vector<bool> others;
    others.reserve(limits.size());
    for (const Limits& own : limits) others.push_back(own != kind);
    vary_layers(stack, others, [&](LayerVariant& variant) {
      variant.ffn.activation_limit = kind.second;
      if (variant.ffn.experts) variant.ffn.experts->activation_limit = kind.first;
    });
  }
}

void read_step(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = config.size_or({"num_attention_groups"}, 8);
  defaults.head_dim = 128;
  defaults.max_position_embeddings = config.size_or({"max_seq_len"}, 128000);
  defaults.norm_eps = 1e-5;
  defaults.norm.weight = NormWeight::one_plus;
  defaults.rope.by_layer_type = true;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.self_attention.output_gate = ContextGate::sigmoid_of_head;
  const std::int64_t heads =
      read_windowed_step_heads(config, stack.self_attention.num_attention_heads);
  const WindowSpec window = read_window(config, 0);
  const std::vector<bool> full = read_full_step_layers(config, stack.num_layers);
  RopeSpec rope;
  read_step_ropes(config, spec, full, rope);
  vary_layers(stack, full, [&](LayerVariant& variant) {
    variant.self_attention.window = window;
    variant.self_attention.num_attention_heads = heads;
    variant.self_attention.rope = rope;
  });
  set_experts(stack, read_sparse_step_layers(config, stack.num_layers), read_step_experts(config));
  read_activation_limits(config, stack);
  config.expect_number("query_pre_attn_scalar", static_cast<double>(stack.self_attention.head_dim));
  config.expect_flag("use_head_wise_attn_gate", true);
  config.expect_flag("use_qk_norm", true);
  config.expect_flag("zero_centered", true);
  config.expect_flag("sink", false);
  config.expect_text("att_impl_type", "GQA");
  config.expect_flag("mlp_bias", false);
  config.ignore({"num_nextn_predict_layers", "num_mtp_layers", "mtp_layer_types",
                 "mtp_mlp_layer_types", "use_rope_layers", "yarn_only_types",
                 "output_router_logits"});
  expect_heads_of_layers(config, stack);
}

/// Layers with experts of Step3TextConfig: all but the first four and the last of its 61.
std::vector<bool> sparse_layers_of_class(ConfigReader& config, std::int64_t num_layers) {
  constexpr std::int64_t kFirst = 4;
  constexpr std::int64_t kLast = 59;
  if (!config.has("moe_layers_enum")) {
    config.note_of_class("moe_layers_enum", fmt::format("{} to {}", kFirst, kLast));
  }
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    sparse.push_back(layer >= kFirst && layer <= kLast);
  }
  return sparse;
}

ExpertsSpec read_step3_experts(ConfigReader& config) {
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class({"moe_num_experts"}, 48);
  experts.num_experts_per_tok = config.size_or_of_class({"moe_top_k"}, 3);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 5120);
  experts.shared_intermediate_size = config.size_or_of_class({"share_expert_dim"}, 5120);
  experts.normalise = config.flag_or({"norm_expert_weight"}, false);
  config.expect_flag("use_moe", true);
  config.ignore({"moe_every_n_layer", "moe_layer_offset"});
  return experts;
}

/// Step-3: multi-matrix factorisation attention with one key-value head, experts in most layers
/// beside a shared one. Source: vLLM, step3_text.py; StepFun, modeling_step3.py, whose softmax has
/// the type of the scores.
void read_step3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.sizes = DecoderDefaults::Sizes{7168, 18432, 61, 64, 128815};
  defaults.head_dim = 256;
  defaults.max_position_embeddings =
      config.size_or({"max_position_embedding"}, config.size_or({"max_seq_len"}, 65536));
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 500000;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.num_key_value_heads =
      config.size_or_of_class({"num_attention_groups", "num_key_value_heads"}, 1);
  if (stack.self_attention.num_key_value_heads != 1) {
    config.fail("num_attention_groups", "is not 1", "the class has one key-value head");
  }
  stack.self_attention.softmax = SoftmaxPrecision::activation;
  stack.self_attention.query_rank = config.size_or_of_class({"share_q_dim"}, 2048);
  const std::vector<bool> sparse =
      read_listed_step_layers(config, sparse_layers_of_class(config, stack.num_layers));
  set_experts(stack, sparse, read_step3_experts(config));
}

Family step3_vl_family() {
  return wrapper_family(
      {.model_types = {"step3_vl"},
       .classes = {"Step3VLForConditionalGeneration", "Step3vForConditionalGeneration"},
       .bare_classes = {"Step3vModel"},
       .text_type = "step3_text",
       .count_towers = count_step3_tower,
       .tying = HeadTying::whole});
}

/// The vision tower beside Step 3.5's text model. A class without it has the text model's keys
/// alone.
Family step3p7_family() {
  Family family = wrapper_family({.model_types = {"step3p7"},
                                  .classes = {"Step3p7ForConditionalGeneration"},
                                  .bare_classes = {"Step3p7Model"},
                                  .text_type = "step3p5",
                                  .count_towers = count_step3p7_tower,
                                  .tying = HeadTying::whole});
  family.classes = either_of(family.classes, llama_classes("Step3p7Flash"));
  const FamilyReader whole = family.reader;
  family.reader = [whole](ConfigReader& config, ModelSpec& spec) {
    if (spec.architecture.starts_with("Step3p7Flash")) return read_step(config, spec);
    whole.read(config, spec);
  };
  return family;
}

constexpr NameRule kStep[] = {
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.g_proj.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.moe.gate.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.moe.router_bias"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.moe.gate_proj.%", stacked_experts()},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.moe.up_proj.%", stacked_experts()},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.moe.down_proj.%", stacked_experts()},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.share_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.share_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.share_expert.down_proj.%"},
};

constexpr NameRule kStep3Queries[] = {
    {"decoder.layers.attention.query_a.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.self_attn.inter_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.wq.%"},
};

/// Without head counts, of which each kind of layer has its own.
constexpr GgufKey kStepKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count_kv", "num_attention_groups"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"expert_count", "moe_num_experts"},
    {"expert_used_count", "moe_top_k"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "share_expert_dim"},
    {"expert_weights_scale", "moe_router_scaling_factor"},
    {"expert_weights_norm", "norm_expert_weight"},
};

/// The query heads of the layers of a kind, which must agree; 0 without such layers.
std::int64_t heads_of_kind(const GgufMetadataReader& metadata,
                           const std::vector<std::int64_t>& heads,
                           const std::vector<bool>& windowed, bool kind) {
  std::int64_t found = 0;
  for (std::size_t layer = 0; layer < windowed.size(); ++layer) {
    if (windowed[layer] != kind) continue;
    const bool differs = found != 0 && found != heads[layer];
    if (differs) metadata.fail("attention.head_count", "differs between layers of a kind");
    found = heads[layer];
  }
  return found;
}

/// Half of a head turns in layers without a window (llama.cpp, src/models/step35.cpp).
void add_step_ropes(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::int64_t head_dim = metadata.count("attention.key_length").value_or(0);
  const std::int64_t rotary = metadata.count("rope.dimension_count").value_or(head_dim);
  if (head_dim <= 0 || rotary > head_dim) {
    metadata.fail("rope.dimension_count", "exceeds the head size");
  }
  const double share = static_cast<double>(rotary) / static_cast<double>(head_dim);
  ConfigDraft ropes = config.add_object("rope_parameters");
  ConfigDraft windowed = ropes.add_object("sliding_attention");
  windowed.set_text("rope_type", "default");
  windowed.copy(metadata, "rope.freq_base", "rope_theta");
  windowed.copy(metadata, "rope.freq_base_swa", "rope_theta");
  windowed.set_number("partial_rotary_factor", share);
  ConfigDraft full = ropes.add_object("full_attention");
  full.set_text("rope_type", "default");
  full.copy(metadata, "rope.freq_base", "rope_theta");
  full.set_number("partial_rotary_factor", share / 2);
}

/// Lists of a file may end in entries of layers for multi-token prediction.
void finish_step(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  const auto layers = static_cast<std::size_t>(metadata.layers());
  const std::vector<std::int64_t> heads = metadata.counts_by_layer("attention.head_count");
  auto windowed = metadata.flags_by_layer("attention.sliding_window_pattern");
  if (!windowed) metadata.fail("attention.sliding_window_pattern", "is missing");
  windowed->resize(layers);
  const std::int64_t full = heads_of_kind(metadata, heads, *windowed, false);
  const std::int64_t sliding = heads_of_kind(metadata, heads, *windowed, true);
  config.set_count("num_attention_heads", full != 0 ? full : sliding);
  if (sliding != 0) config.set_count("num_sliding_attention_heads", sliding);
  const std::int64_t dense = metadata.count("leading_dense_block_count").value_or(0);
  std::vector<std::string> attentions;
  std::vector<std::string> networks;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    attentions.emplace_back((*windowed)[layer] ? "sliding_attention" : "full_attention");
    networks.emplace_back(static_cast<std::int64_t>(layer) < dense ? "dense" : "sparse");
  }
  config.set_texts("layer_types", attentions);
  config.set_texts("mlp_layer_types", networks);
  add_step_ropes(metadata, config);
  for (const auto& [from, to] : {GgufKey{"swiglu_clamp_exp", "swiglu_limits"},
                                 GgufKey{"swiglu_clamp_shexp", "swiglu_limits_shared"}}) {
    if (const auto limits = metadata.numbers_by_layer(from)) config.set_numbers(to, *limits);
  }
}

}  // namespace

std::vector<Family> step3_families() {
  return {step3p7_family(),
          step3_vl_family(),
          {.model_types = {"step3_text"},
           .classes = llama_classes("Step3Text"),
           .reader = read_step3,
           .names = llama_names({kStep3Queries, kStep}),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"step3p5"},
           .classes = llama_classes("Step3p5"),
           .reader = read_step,
           .names = llama_names({kStep, query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::norms_plus_one, {{.name = "step35",
                                                              .common = kStepKeys,
                                                              .head_dim = GgufHeadDim::never,
                                                              .finish = finish_step}})}};
}

}  // namespace headroom::detail
