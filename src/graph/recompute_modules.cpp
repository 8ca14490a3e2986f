#include "headroom/recompute_modules.h"

#include "enum_table.h"

namespace headroom {
namespace {

struct ModuleName {
  RecomputeModule module;
  std::string_view name;
};
constexpr ModuleName kModules[] = {{RecomputeModule::core_attn, "core_attn"},
                                   {RecomputeModule::layernorm, "layernorm"},
                                   {RecomputeModule::mla_up_proj, "mla_up_proj"},
                                   {RecomputeModule::mlp, "mlp"},
                                   {RecomputeModule::moe, "moe"},
                                   {RecomputeModule::moe_act, "moe_act"},
                                   {RecomputeModule::shared_experts, "shared_experts"}};
static_assert(detail::lists_every<kModules>(&ModuleName::module));

std::optional<RecomputeModule> module_of(std::string_view name) noexcept {
  for (const ModuleName& one : kModules) {
    if (one.name == name) return one.module;
  }
  return std::nullopt;
}

bool is_expert_part(LayerPart part) noexcept {
  return part == LayerPart::experts || part == LayerPart::expert_activation ||
         part == LayerPart::shared_expert;
}

/// True for a part that runs from its input to its output as one module.
bool is_whole_module(LayerPart part) noexcept {
  return part == LayerPart::dense_ffn || is_expert_part(part);
}

}  // namespace

LayerPart layer_part(const Node& node) {
  if (in_attention_core(node)) return LayerPart::attention_core;
  if (node.latent_step == LatentStep::expansion) return LayerPart::latent_expansion;
  if (node.latent_step == LatentStep::norm) return LayerPart::other;
  switch (node.component.part) {
    case Part::layer_norm:
    case Part::rms_norm:
      return LayerPart::norm;
    case Part::mlp_up:
    case Part::mlp_activation:
    case Part::mlp_down:
      return LayerPart::dense_ffn;
    case Part::mlp_router:
    case Part::mlp_experts_up:
    case Part::mlp_experts_down:
    case Part::mlp_experts_combine:
    case Part::mlp_latent:
      return LayerPart::experts;
    case Part::mlp_shared_expert:
      return LayerPart::shared_expert;
    case Part::mlp_experts_activation:
      return LayerPart::expert_activation;
    case Part::embeddings:
    case Part::conditioning:
    case Part::text_projection:
    case Part::modulation:
    case Part::relative_position_bias:
    case Part::attention_qkv:
    case Part::attention_query_key_norm:
    case Part::attention_rotary:
    case Part::attention_kv_cache:
    case Part::attention_feature_map:
    case Part::attention_scores:
    case Part::attention_softmax:
    case Part::attention_context:
    case Part::attention_core:
    case Part::attention_gate:
    case Part::attention_convolution:
    case Part::attention_compressor:
    case Part::attention_indexer:
    case Part::attention_out:
    case Part::mixer_in:
    case Part::mixer_convolution:
    case Part::mixer_scan:
    case Part::mixer_gate:
    case Part::mixer_out:
    case Part::recurrent_input:
    case Part::recurrent_core:
    case Part::convolution:
    case Part::convolution_activation:
    case Part::cross_attention_query:
    case Part::cross_attention_key_value:
    case Part::cross_attention_kv_cache:
    case Part::cross_attention_scores:
    case Part::cross_attention_softmax:
    case Part::cross_attention_context:
    case Part::cross_attention_core:
    case Part::cross_attention_out:
    case Part::norm_gate:
    case Part::residual:
    case Part::hyper_connection:
    case Part::dropout:
    case Part::pooler:
    case Part::head:
    case Part::vision_tower:
    case Part::audio_tower:
    case Part::projector:
    case Part::adapter:
    case Part::loss:
    case Part::communication:
      break;
  }
  return LayerPart::other;
}

LayerPart recomputed_by(const Node& saver, const Node* producer) {
  const LayerPart of_saver = layer_part(saver);
  if (producer == nullptr) return of_saver;
  const LayerPart of_producer = layer_part(*producer);
  // A norm's output is made again from its input, which stays.
  if (of_producer == LayerPart::norm) return LayerPart::norm;
  if (of_producer == LayerPart::expert_activation) return of_producer;
  if (of_producer == LayerPart::latent_expansion) return of_producer;
  if (of_saver == LayerPart::shared_expert && of_producer == of_saver) return of_saver;
  if (!is_whole_module(of_saver)) return LayerPart::other;
  if (is_expert_part(of_saver)) {
    const bool is_exchanged = producer->component.part == Part::communication;
    return is_exchanged || is_expert_part(of_producer) ? LayerPart::experts : LayerPart::other;
  }
  return of_producer == of_saver ? of_saver : LayerPart::other;
}

bool RecomputeModules::recompute(LayerPart part) const noexcept {
  switch (part) {
    case LayerPart::attention_core:
      return has(RecomputeModule::core_attn);
    case LayerPart::norm:
      return has(RecomputeModule::layernorm);
    case LayerPart::latent_expansion:
      return has(RecomputeModule::mla_up_proj);
    case LayerPart::dense_ffn:
      return has(RecomputeModule::mlp);
    case LayerPart::experts:
      return has(RecomputeModule::moe);
    case LayerPart::expert_activation:
      return has(RecomputeModule::moe) || has(RecomputeModule::moe_act);
    case LayerPart::shared_expert:
      return has(RecomputeModule::moe) || has(RecomputeModule::shared_experts);
    case LayerPart::other:
      break;
  }
  return false;
}

std::string name_of(const RecomputeModules& modules, char separator) {
  std::string names;
  for (const ModuleName& one : kModules) {
    if (!modules.has(one.module)) continue;
    if (!names.empty()) names += separator;
    names += one.name;
  }
  return names;
}

std::optional<RecomputeModules> recompute_modules(std::string_view names) noexcept {
  RecomputeModules modules;
  while (true) {
    const std::size_t comma = names.find(',');
    const auto module = module_of(names.substr(0, comma));
    if (!module) return std::nullopt;
    modules.add(*module);
    if (comma == std::string_view::npos) return modules;
    names.remove_prefix(comma + 1);
  }
}

}  // namespace headroom
