// LongCat-Flash: layers of two latent attentions and two dense networks, with experts that run
// beside the second attention, some of which compute nothing (Meituan, arXiv 2509.01322;
// transformers, models/longcat_flash).
#include <fmt/format.h>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "reading_limits.h"

namespace headroom::detail {
namespace {

/// Attentions and dense networks of one layer.
constexpr std::int64_t kHalves = 2;

/// Attentions of all layers, which are listed one by one.
std::int64_t read_halves(ConfigReader& config) {
  const std::int64_t layers = config.layers({"num_layers"});
  if (layers <= kMostLayers / kHalves) return kHalves * layers;
  config.fail("num_layers", fmt::format("is more than {}", kMostLayers / kHalves),
              "write the model's number of layers");
}

/// The router also scores experts that return their input.
void count_zero_experts(ConfigReader& config, ModelSpec& spec, const ExpertsSpec& experts) {
  const std::int64_t idle = config.count_or({"zero_expert_num"}, 256);
  config.expect_text("zero_expert_type", "identity");
  if (idle == 0) return;
  const auto add = [&](const char* path, std::vector<std::int64_t> shape) {
    spec.counted_only.push_back({path, std::move(shape), WeightRole::mlp,
                                 spec.decoder->num_layers / kHalves, ModelPart::text,
                                 CountedUse::loaded});
  };
  add("layers.router.zero_experts.weight", {idle, spec.hidden_size});
  if (experts.router_bias) add("layers.router.zero_experts.bias", {idle});
  spec.assumptions.push_back(
      fmt::format("{} of {} experts compute nothing: counted as if a token chose {} of the others",
                  idle, experts.num_experts + idle, experts.num_experts_per_tok));
}

/// The first half of a layer has the experts; the dense network that reads what they read counts
/// as their shared expert.
ExpertsSpec read_longcat_experts(ConfigReader& config, const StackSpec& stack) {
  ExpertsSpec experts;
  experts.num_experts = config.size_or({"n_routed_experts", "num_local_experts"}, 512);
  experts.num_experts_per_tok = config.size_or({"moe_topk", "num_experts_per_tok"}, 12);
  experts.intermediate_size =
      config.size_or({"expert_ffn_hidden_size", "moe_intermediate_size"}, 2048);
  experts.shared_intermediate_size = stack.ffn.intermediate_size;
  experts.correction_bias = true;
  experts.router_bias = config.flag_or({"router_bias"}, false);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 6);
  config.expect_flag("norm_topk_prob", false);
  return experts;
}

void read_longcat(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(131072);
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e7;
  const std::int64_t layers = read_halves(config);
  defaults.num_hidden_layers = layers;
  defaults.intermediate_size = config.size({"ffn_hidden_size", "intermediate_size"});
  config.ignore({"head_dim"});
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.num_layers = layers;
  read_latent_attention(config, spec, {});
  const ExpertsSpec experts = read_longcat_experts(config, stack);
  std::vector<bool> routed;
  for (std::int64_t half = 0; half < layers; ++half) routed.push_back(half % kHalves == 0);
  set_experts(stack, routed, experts);
  count_zero_experts(config, spec, experts);
  spec.not_run = "its experts beside the second attention have no kernel yet";
  // Factors of vectors, names of what the class always has, and an extra layer for drafts.
  config.ignore({"mla_scale_q_lora", "mla_scale_kv_lora", "attention_method", "router_dtype",
                 "nextn_use_scmoe", "num_nextn_predict_layers"});
}

}  // namespace

std::vector<Family> longcat_families() {
  return {{.model_types = {"longcat_flash"},
           .classes = decoder_classes("LongcatFlash", {.float32_logits = true}),
           .reader = read_longcat,
           .names = None("its tensors have no stored names yet"),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
