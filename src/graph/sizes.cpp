#include "sizes.h"

#include <algorithm>

#include "headroom/error.h"
#include "used_variants.h"

namespace headroom::detail {
namespace {

constexpr Integer kLargestMultipleOfHiddenSize = 8;

}  // namespace

namespace {

/// Sets `value`; throws Error{invalid_input} if another layer set a different one.
void set_once(std::int64_t& value, std::int64_t unset, std::int64_t given, const ModelSpec& spec) {
  if (value != unset && value != given) {
    throw Error(ErrorCode::invalid_input, "its layers compress or choose keys at different rates",
                spec.name, "give all layers of a kind the same rate");
  }
  value = given;
}

void add_key_choice(const AttentionSpec& attention, const ModelSpec& spec, LayerTraits& traits) {
  const auto& shared = attention.shared_key_value;
  const bool compresses = shared && shared->compression;
  if (attention.indexer) {
    set_once(traits.indexer_top_k, 0, attention.indexer->top_k, spec);
    set_once(traits.indexed_block, 1, attention.indexer->block_size, spec);
    if (compresses) set_once(traits.indexed_rate, 1, shared->compression->rate, spec);
    if (attention.indexer->pools()) {
      set_once(traits.indexed_rate, 1, attention.indexer->pool_size, spec);
      traits.chooses_pools = true;
    }
  } else if (compresses) {
    set_once(traits.heavy_compression_rate, 0, shared->compression->rate, spec);
  }
}

}  // namespace

namespace {

/// The window of the stack's layers that have one; of attention in chunks, the widest.
WindowSpec window_of(const StackSpec& stack, const ModelSpec& spec) {
  WindowSpec found;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const AttentionSpec& attention = stack.attention_of(variant);
    const WindowSpec& window = attention.window;
    if (window.kind == WindowKind::none) continue;
    if (attention.global) {
      if (window.size > found.size) found = window;
      continue;
    }
    if (found.kind != WindowKind::none && found != window) {
      throw Error(ErrorCode::invalid_input, "its layers have windows of different sizes", spec.name,
                  "give all windowed layers the same window");
    }
    found = window;
  }
  return found;
}

}  // namespace

LayerTraits traits_of(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  LayerTraits traits;
  traits.window = window_of(stack, spec);
  if (stack.self_attention.global) traits.chunk_window = 2 * traits.window.size;
  if (spec.encoder && spec.decoder) traits.encoder_window = window_of(*spec.encoder, spec);
  if (spec.encoder && !spec.encoder->self_attention.global) {
    traits.encoder_block = spec.encoder->self_attention.block_size;
    traits.encoder_global_block = spec.encoder->self_attention.global_block_size;
  }
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    add_key_choice(stack.attention_of(variant), spec, traits);
    if (const auto& experts = stack.ffn_of(variant).experts) {
      traits.num_experts = experts->num_experts;
      traits.num_experts_per_tok = experts->num_experts_per_tok;
    }
  }
  return traits;
}

namespace {

void set_expert_sizes(const StackSpec& stack, Bindings& sizes) {
  ExpertsSpec experts;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (stack.ffn_of(variant).experts) experts = *stack.ffn_of(variant).experts;
  }
  sizes.set(Symbol::num_experts, experts.num_experts);
  sizes.set(Symbol::num_experts_per_tok, experts.num_experts_per_tok);
  sizes.set(Symbol::moe_intermediate_size, experts.intermediate_size);
  sizes.set(Symbol::shared_intermediate_size, experts.shared_intermediate_size);
}

void set_latent_sizes(const AttentionSpec& attention, Bindings& sizes) {
  const LatentAttentionSpec latent = attention.latent.value_or(LatentAttentionSpec{});
  const auto& shared = attention.shared_key_value;
  const std::int64_t rank = shared ? shared->q_lora_rank : latent.q_lora_rank;
  sizes.set(Symbol::q_lora_rank, attention.query_rank > 0 ? attention.query_rank : rank);
  sizes.set(Symbol::kv_lora_rank, latent.kv_lora_rank);
  sizes.set(Symbol::qk_nope_head_dim, latent.qk_nope_head_dim);
  sizes.set(Symbol::qk_rope_head_dim, latent.qk_rope_head_dim);
}

/// Groups of a stack's state-space layers whose heads share B and C; 0 without such layers.
Integer state_groups(const StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const auto& mixer = stack.attention_of(variant).state_space;
    if (mixer && mixer->kind == StateSpaceKind::dual) return mixer->num_groups;
  }
  return 0;
}

/// Key heads of a stack's first gated delta layer; 0 without one.
Integer delta_key_heads(const StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const auto& delta = stack.attention_of(variant).gated_delta;
    if (delta) return delta->num_key_heads;
  }
  return 0;
}

/// Width of the FFN, or 0 where experts take the place of it in every layer.
Integer ffn_width(const StackSpec& stack) {
  const auto routes = [&](std::size_t variant) {
    return stack.ffn_of(variant).experts.has_value();
  };
  const bool has_experts = std::ranges::any_of(used_variants(stack), routes);
  return has_experts ? dense_intermediate_size(stack) : stack.ffn.intermediate_size;
}

}  // namespace

Bindings sizes_of(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  const AttentionSpec& attention = stack.self_attention;
  Bindings sizes;
  sizes.set(Symbol::num_hidden_layers, stack.num_layers);
  sizes.set(Symbol::num_encoder_layers,
            spec.decoder && spec.encoder ? spec.encoder->num_layers : 0);
  sizes.set(Symbol::hidden_size, spec.hidden_size);
  sizes.set(Symbol::intermediate_size, ffn_width(stack));
  sizes.set(Symbol::num_attention_heads, attention.num_attention_heads);
  sizes.set(Symbol::num_key_value_heads, attention.num_key_value_heads);
  sizes.set(Symbol::n_groups, state_groups(stack));
  sizes.set(Symbol::linear_num_key_heads, delta_key_heads(stack));
  sizes.set(Symbol::head_dim, attention.head_dim);
  sizes.set(Symbol::value_head_dim, attention.value_head_dim);
  sizes.set(Symbol::sliding_window, traits_of(spec).window.size);
  sizes.set(Symbol::kernel_size, stack.convolution ? stack.convolution->kernel_size : 0);
  set_expert_sizes(stack, sizes);
  set_latent_sizes(attention, sizes);
  sizes.set(Symbol::embedding_size, spec.embedding.embedding_size);
  sizes.set(Symbol::vocab_size, spec.embedding.vocab_size);
  sizes.set(Symbol::max_position_embeddings, spec.position.max_position_embeddings);
  sizes.set(Symbol::type_vocab_size, spec.embedding.type_vocab_size);
  sizes.set(Symbol::relative_attention_num_buckets, spec.position.num_buckets);
  sizes.set(Symbol::num_labels, spec.head.classifier ? spec.head.classifier->num_labels : 0);
  Integer patch_elements = 0;
  if (const auto& image = spec.embedding.image) {
    patch_elements = checked_multiply(checked_multiply(image->num_channels, image->num_frames),
                                      checked_multiply(image->patch_size, image->patch_size));
  }
  sizes.set(Symbol::patch_elements, patch_elements);
  return sizes;
}

std::vector<Relation> relations_between(const Bindings& sizes) {
  const auto value = [&](Symbol symbol) { return sizes.get(symbol).value_or(0); };
  const Integer d = value(Symbol::hidden_size);
  const Integer h = value(Symbol::num_attention_heads);
  const Integer f = value(Symbol::intermediate_size);
  std::vector<Relation> relations;
  if (value(Symbol::num_encoder_layers) == value(Symbol::num_hidden_layers)) {
    relations.push_back(relation({Symbol::num_encoder_layers}, Symbol::num_hidden_layers));
  }
  const bool attends = h != 0;
  if (attends && value(Symbol::num_key_value_heads) == h) {
    relations.push_back(relation({Symbol::num_key_value_heads}, Symbol::num_attention_heads));
  }
  if (attends && value(Symbol::value_head_dim) == value(Symbol::head_dim)) {
    relations.push_back(relation({Symbol::value_head_dim}, Symbol::head_dim));
  }
  if (f != 0 && f % d == 0 && f / d <= kLargestMultipleOfHiddenSize) {
    relations.push_back(relation({Symbol::intermediate_size}, (f / d) * Expr(Symbol::hidden_size)));
  }
  if (checked_multiply(h, value(Symbol::head_dim)) == d) {
    relations.push_back(
        relation({Symbol::num_attention_heads, Symbol::head_dim}, Symbol::hidden_size));
  }
  return relations;
}

}  // namespace headroom::detail
