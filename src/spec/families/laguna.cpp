// Laguna: windowed layers with more heads and a RoPE of their own, norms on query and key heads,
// gated attention, sigmoid routing beside a shared expert (Poolside; transformers, models/laguna).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kHeads = "num_attention_heads_per_layer";
constexpr std::string_view kFfnTypes = "mlp_layer_types";

/// RoPE of the full layers is the model's; that of the windowed ones differs.
void read_laguna_windows(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  const std::int64_t head_dim = stack.self_attention.head_dim;
  RopeSpec full = spec.position.rope;
  full.theta = 500000;
  full.rotary_dim = head_dim / 2;
  spec.position.rope = read_rope_of(config, "full_attention", spec.position, head_dim, full);
  const RopeSpec local =
      read_rope_of(config, "sliding_attention", spec.position, head_dim, RopeSpec{});
  const WindowSpec window = read_window(config, 512);
  const std::vector<bool> windowed =
      read_windowed_layers(config, stack.num_layers, [](std::int64_t) { return false; });
  std::vector<bool> is_full = windowed;
  is_full.flip();
  vary_layers(stack, is_full, [&](LayerVariant& variant) {
    variant.self_attention.window = window;
    variant.self_attention.rope = local;
  });
}

/// Query heads of each layer.
std::vector<std::int64_t> read_heads_by_layer(ConfigReader& config, const StackSpec& stack) {
  const AttentionSpec& attention = stack.self_attention;
  std::vector<std::int64_t> heads = config.counts(kHeads);
  if (heads.empty()) {
    heads.assign(static_cast<std::size_t>(stack.num_layers), attention.num_attention_heads);
  }
  if (std::ssize(heads) != stack.num_layers) {
    config.fail(kHeads, fmt::format("has {} entries for {} layers", heads.size(), stack.num_layers),
                "write one number of heads for each of num_hidden_layers");
  }
  for (const std::int64_t count : heads) {
    if (count > 0 && count % attention.num_key_value_heads == 0) continue;
    config.fail(kHeads,
                fmt::format("{} key-value heads do not divide {} query heads",
                            attention.num_key_value_heads, count),
                "use multiples of num_key_value_heads");
  }
  return heads;
}

void set_heads(StackSpec& stack, const std::vector<std::int64_t>& heads) {
  const std::int64_t usual = stack.self_attention.num_attention_heads;
  for (const std::int64_t count : std::set<std::int64_t>(heads.begin(), heads.end())) {
    if (count == usual) continue;
    std::vector<bool> others;
    others.reserve(heads.size());
    for (const std::int64_t own : heads) others.push_back(own != count);
    vary_layers(stack, others, [count](LayerVariant& variant) {
      variant.self_attention.num_attention_heads = count;
    });
  }
}

/// The projections of the gates: one number per head, or per dimension of each head.
void count_gates(ConfigReader& config, ModelSpec& spec, const std::vector<std::int64_t>& heads) {
  const std::int64_t head_dim = spec.decoder->self_attention.head_dim;
  const bool is_flag = !config.is_text("gating");
  if (is_flag) config.expect_flag("gating", true);
  const std::int64_t values =
      is_flag ? 1
              : config.choice_or<std::int64_t>({"gating"},
                                               {{"per-head", 1}, {"per-element", head_dim}}, 1);
  for (const std::int64_t count : std::set<std::int64_t>(heads.begin(), heads.end())) {
    spec.counted_only.push_back({fmt::format("decoder.layers.attention.gate.of_{}_heads", count),
                                 {product(config, kHeads, count, values), spec.hidden_size},
                                 WeightRole::attention,
                                 std::ranges::count(heads, count),
                                 ModelPart::text});
  }
  spec.assumptions.emplace_back("the gates of attention count as parameters, without operators");
  spec.not_run = "its gates of attention, a softplus of one number per head, have no kernel yet";
}

std::vector<bool> read_sparse_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<std::string> types = config.texts(kFfnTypes);
  std::vector<bool> routed(static_cast<std::size_t>(num_layers), true);
  routed.front() = false;
  if (types.empty()) return routed;
  if (std::ssize(types) != num_layers) {
    config.fail(kFfnTypes, fmt::format("has {} entries for {} layers", types.size(), num_layers),
                "write \"dense\" or \"sparse\" for each of num_hidden_layers");
  }
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    routed[layer] = types[layer] == "sparse";
    if (routed[layer] || types[layer] == "dense") continue;
    config.fail(kFfnTypes, fmt::format("\"{}\" is not supported", types[layer]),
                "use dense or sparse");
  }
  return routed;
}

ExpertsSpec read_laguna_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 256, 8});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 512);
  experts.shared_intermediate_size =
      config.size_or_of_class({"shared_expert_intermediate_size"}, 512);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.correction_bias_is_parameter = true;  // registered as one, without a gradient
  experts.normalise = true;
  experts.scaling_factor = config.number_or({"moe_routed_scaling_factor"}, 1);
  config.expect_flag("moe_apply_router_weight_on_input", false);
  config.ignore({"moe_router_logit_softcapping"});  // of numbers per token and expert
  return experts;
}

void read_laguna(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.rope.by_layer_type = true;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const std::vector<std::int64_t> heads = read_heads_by_layer(config, stack);
  read_laguna_windows(config, spec);
  set_heads(stack, heads);
  set_experts(stack, read_sparse_layers(config, stack.num_layers), read_laguna_experts(config));
  count_gates(config, spec, heads);
}

}  // namespace

std::vector<Family> laguna_families() {
  return {{.model_types = {"laguna"},
           .classes = llama_classes("Laguna"),
           .reader = read_laguna,
           .names = None("its gates of attention are counted and not run"),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
