#include "headroom/graph.h"

#include <algorithm>
#include <set>

namespace headroom {
namespace {

Expr product(const std::vector<Expr>& shape) {
  Expr result = Integer{1};
  for (const Expr& size : shape) result = result * size;
  return result;
}

}  // namespace

Expr Tensor::elements() const { return product(shape); }

Expr Weight::elements() const { return product(shape); }

std::string_view name_of(Part part) noexcept {
  switch (part) {
    case Part::embeddings:
      return "embeddings";
    case Part::conditioning:
      return "conditioning";
    case Part::text_projection:
      return "text_projection";
    case Part::modulation:
      return "modulation";
    case Part::relative_position_bias:
      return "relative_position_bias";
    case Part::attention_qkv:
      return "attention.qkv";
    case Part::attention_query_key_norm:
      return "attention.query_key_norm";
    case Part::attention_rotary:
      return "attention.rotary";
    case Part::attention_kv_cache:
      return "attention.kv_cache";
    case Part::attention_feature_map:
      return "attention.feature_map";
    case Part::attention_scores:
      return "attention.scores";
    case Part::attention_softmax:
      return "attention.softmax";
    case Part::attention_context:
      return "attention.context";
    case Part::attention_core:
      return "attention.core";
    case Part::attention_gate:
      return "attention.gate";
    case Part::attention_convolution:
      return "attention.convolution";
    case Part::attention_compressor:
      return "attention.compressor";
    case Part::attention_indexer:
      return "attention.indexer";
    case Part::attention_out:
      return "attention.out";
    case Part::mixer_in:
      return "mixer.in";
    case Part::mixer_convolution:
      return "mixer.convolution";
    case Part::mixer_scan:
      return "mixer.scan";
    case Part::mixer_gate:
      return "mixer.gate";
    case Part::mixer_out:
      return "mixer.out";
    case Part::recurrent_input:
      return "recurrent.input";
    case Part::recurrent_core:
      return "recurrent.core";
    case Part::convolution:
      return "convolution";
    case Part::convolution_activation:
      return "convolution.activation";
    case Part::cross_attention_query:
      return "cross_attention.query";
    case Part::cross_attention_key_value:
      return "cross_attention.key_value";
    case Part::cross_attention_kv_cache:
      return "cross_attention.kv_cache";
    case Part::cross_attention_scores:
      return "cross_attention.scores";
    case Part::cross_attention_softmax:
      return "cross_attention.softmax";
    case Part::cross_attention_context:
      return "cross_attention.context";
    case Part::cross_attention_core:
      return "cross_attention.core";
    case Part::cross_attention_out:
      return "cross_attention.out";
    case Part::mlp_up:
      return "mlp.up";
    case Part::mlp_activation:
      return "mlp.activation";
    case Part::mlp_down:
      return "mlp.down";
    case Part::mlp_router:
      return "mlp.router";
    case Part::mlp_experts_up:
      return "mlp.experts.up";
    case Part::mlp_experts_activation:
      return "mlp.experts.activation";
    case Part::mlp_experts_down:
      return "mlp.experts.down";
    case Part::mlp_experts_combine:
      return "mlp.experts.combine";
    case Part::mlp_latent:
      return "mlp.latent";
    case Part::mlp_shared_expert:
      return "mlp.shared_expert";
    case Part::layer_norm:
      return "layer_norm";
    case Part::rms_norm:
      return "rms_norm";
    case Part::norm_gate:
      return "norm_gate";
    case Part::residual:
      return "residual";
    case Part::hyper_connection:
      return "hyper_connection";
    case Part::dropout:
      return "dropout";
    case Part::pooler:
      return "pooler";
    case Part::head:
      return "head";
    case Part::vision_tower:
      return "vision_tower";
    case Part::audio_tower:
      return "audio_tower";
    case Part::projector:
      return "projector";
    case Part::adapter:
      return "adapter";
    case Part::loss:
      return "loss";
    case Part::communication:
      break;
  }
  return "communication";
}

bool is_trained(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.weights, [&](WeightId weight) {
    return graph.weights[weight].training == Training::trained;
  });
}

bool is_layer_gemm(const Block& block, const Node& node) {
  const bool multiplies =
      std::holds_alternative<Linear>(node.op) || std::holds_alternative<ExpertLinear>(node.op);
  return multiplies && block.is_layers() && node.component.part != Part::mlp_router;
}

bool is_cached(ElementType type) noexcept {
  switch (type) {
    case ElementType::activation:
    case ElementType::index:
      return false;
    case ElementType::kv_cache:
    case ElementType::key_cache:
    case ElementType::compressor_state:
    case ElementType::convolution_state:
    case ElementType::recurrent_state:
      break;
  }
  return true;
}

Expr bytes_of(ElementType type) {
  switch (type) {
    case ElementType::activation:
    case ElementType::compressor_state:
    case ElementType::convolution_state:
      return Symbol::activation_bytes;
    case ElementType::index:
      return Integer{8};  // token ids are 64-bit, as in PyTorch
    case ElementType::kv_cache:
    case ElementType::key_cache:
      return Symbol::kv_cache_bytes;
    case ElementType::recurrent_state:
      break;
  }
  return Integer{4};  // float32
}

std::vector<CacheTensor> cache_tensors(const Graph& graph) {
  std::vector<CacheTensor> caches;
  std::set<TensorId> seen;  // layers may share the cache of an earlier block
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      for (const TensorId input : node.inputs) {
        const bool is_cache = is_cached(graph.tensors[input].type);
        if (is_cache && seen.insert(input).second) caches.push_back({input, &block, &node});
      }
    }
  }
  return caches;
}

std::string name_of(const Component& component) {
  std::string part(name_of(component.part));
  switch (component.stack) {
    case StackRole::single:
    case StackRole::tower:
      return part;
    case StackRole::audio_tower:
      return component.part == Part::projector ? "audio_projector" : part;
    case StackRole::encoder:
      return "encoder." + part;
    case StackRole::decoder:
      break;
  }
  return "decoder." + part;
}

std::string_view name_of(WeightRole role) noexcept {
  switch (role) {
    case WeightRole::embedding:
      return "embedding";
    case WeightRole::relative_position_bias:
      return "relative_position_bias";
    case WeightRole::attention:
      return "attention";
    case WeightRole::recurrent:
      return "recurrent";
    case WeightRole::convolution:
      return "convolution";
    case WeightRole::mlp:
      return "mlp";
    case WeightRole::norm:
      return "norm";
    case WeightRole::head:
      return "head";
    case WeightRole::projector:
      break;
  }
  return "projector";
}

GraphOptions all_parts() noexcept {
  GraphOptions options;
  options.images = ImageInputs::present;
  options.audio = AudioInputs::present;
  options.global = GlobalTokens::present;
  return options;
}

GraphOptions graph_options(const Workload& workload) noexcept {
  const bool reads_images = workload.images.totals.images > 0;
  return {workload.phase,
          workload.attention,
          workload.latent,
          reads_images ? ImageInputs::present : ImageInputs::absent,
          workload.global_tokens > 0 ? GlobalTokens::present : GlobalTokens::absent,
          workload.seq_len > 1 ? workload.logits : Logits::all,
          workload.audio.totals.segments > 0 ? AudioInputs::present : AudioInputs::absent};
}

}  // namespace headroom
