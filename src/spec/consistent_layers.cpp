#include "consistent_layers.h"

#include <fmt/format.h>

#include <set>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

void require_enough_experts(const FfnSpec& ffn, const std::string& file) {
  if (!ffn.experts || ffn.experts->num_experts_per_tok <= ffn.experts->num_experts) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} experts per token exceed {} experts",
                          ffn.experts->num_experts_per_tok, ffn.experts->num_experts),
              file, "use at most the number of experts");
}

/// Query heads share key-value heads in equal groups.
void require_equal_groups(const AttentionSpec& attention, const std::string& file) {
  const std::int64_t heads = attention.num_attention_heads;
  const std::int64_t kv_heads = attention.num_key_value_heads;
  if (attention.kind != AttentionKind::softmax || attention.latent || kv_heads <= 0) return;
  if (heads % kv_heads == 0) return;
  throw Error(
      ErrorCode::invalid_input,
      fmt::format("{} attention heads cannot share {} key-value heads equally", heads, kv_heads),
      file, "choose a num_key_value_heads that divides num_attention_heads");
}

void require_rotated_pairs(const ModelSpec& spec, const std::string& file) {
  const AttentionSpec& attention = spec.main_stack().self_attention;
  if (attention.kind != AttentionKind::softmax || attention.latent) return;
  const std::int64_t rotated = spec.position.rope.rotary_dim;
  if (rotated <= attention.head_dim && rotated % 2 == 0) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("RoPE rotates {} of {} head dimensions", rotated, attention.head_dim),
              file, "choose an even rotary_dim, at most the size of a head");
}

void require_keys_to_share(const StackSpec& stack, const std::string& file) {
  std::set<WindowKind> kinds_with_keys;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const AttentionSpec& attention = stack.attention_of(stack.variant(layer));
    const WindowKind kind = attention.window.kind;
    if (!attention.shares_key_values) {
      kinds_with_keys.insert(kind);
    } else if (!kinds_with_keys.contains(kind)) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("layer {} shares the keys of an earlier layer of its kind, and there "
                              "is none",
                              layer),
                  file, "lower num_kv_shared_layers, or change layer_types");
    }
  }
}

void require_consistent(const StackSpec& stack, const std::string& file) {
  require_enough_experts(stack.ffn, file);
  require_equal_groups(stack.self_attention, file);
  if (stack.shared_block) require_equal_groups(stack.shared_block->attention, file);
  bool shares = stack.self_attention.shares_key_values;
  for (const LayerVariant& variant : stack.variants) {
    require_enough_experts(variant.ffn, file);
    require_equal_groups(variant.self_attention, file);
    shares = shares || variant.self_attention.shares_key_values;
  }
  if (shares) require_keys_to_share(stack, file);
}

}  // namespace

void require_consistent_layers(const ModelSpec& spec, const std::string& file) {
  if (spec.encoder) require_consistent(*spec.encoder, file);
  if (spec.decoder) require_consistent(*spec.decoder, file);
  if (spec.encoder || spec.decoder) require_rotated_pairs(spec, file);
}

}  // namespace headroom::detail
