#include "consistent_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

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

void require_rotated_pairs(const RopeSpec& rope, const AttentionSpec& attention,
                           const std::string& file) {
  if (attention.kind != AttentionKind::softmax || attention.latent) return;
  const std::int64_t rotated = std::max(rope.rotary_dim, 2 * rope.rotated_pairs);
  constexpr std::int64_t kLeastDynamic = 4;  // its base grows by a power of d / (d - 2)
  const std::int64_t width = rotated == 0 ? attention.head_dim : rotated;
  if (rope.scaling == RopeScalingKind::dynamic && width < kLeastDynamic) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("a dynamic RoPE rotates {} head dimensions", width), file,
                "rotate at least 4, or choose another rope_type");
  }
  if (rotated <= attention.head_dim && rotated % 2 == 0) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("RoPE rotates {} of {} head dimensions", rotated, attention.head_dim),
              file, "choose an even rotary_dim, at most the size of a head");
}

/// Pairs rotate by position · base^(-2i / d) / factor, a number only for bases above 0 and factors
/// but 0; one below 0 turns them back (nanochat). The least one keeps angles of 2^31 positions
/// within float32, which ends at 2^128. YaRN's ramp lies between logarithms of both betas to the
/// base.
void require_frequencies(const RopeSpec& rope, const std::string& file) {
  constexpr double kLeast = 0x1p-96;
  const bool turns_back = rope.scaling == RopeScalingKind::linear;
  const double factor = turns_back ? std::abs(rope.factor) : rope.factor;
  const bool has_factor = rope.scaling == RopeScalingKind::none || factor >= kLeast;
  const bool ramps = rope.scaling == RopeScalingKind::yarn;
  const bool has_ramp = rope.theta > 1 && std::min(rope.beta_fast, rope.beta_slow) >= kLeast;
  if (rope.theta >= kLeast && has_factor && (!ramps || has_ramp)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("RoPE has a base of {}, a factor of {}, and betas of {} and {}",
                          rope.theta, rope.factor, rope.beta_fast, rope.beta_slow),
              file, "choose numbers above 0, and for YaRN a base above 1");
}

/// cap · tanh(x / cap) is a number for caps that float32 holds.
void require_real_cap(double cap, const std::string& file) {
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<float>::min());
  constexpr auto kMost = static_cast<double>(std::numeric_limits<float>::max());
  const double size = std::abs(cap);
  if (size == 0 || (size >= kLeast && size <= kMost)) return;
  throw Error(ErrorCode::invalid_input, fmt::format("a soft cap of {} leaves float32", cap), file,
              "choose a cap of the size of logits, or 0 for none");
}

/// Scores are scaled by a number, not by the root of one below 0.
void require_real_scores(const AttentionSpec& attention, const std::string& file) {
  require_real_cap(attention.soft_cap, file);
  if (std::isfinite(attention.fixed_scale)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("the scale of attention's scores is {}", attention.fixed_scale), file,
              "choose a query_pre_attn_scalar above 0");
}

/// Norms have the root of a variance and epsilon.
void require_real_norms(const NormSpec& norm, const std::string& file) {
  if (norm.eps >= 0) return;
  throw Error(ErrorCode::invalid_input, fmt::format("the norms' epsilon is {}", norm.eps), file,
              "choose a number that is not below 0");
}

/// Windows behind a token, or chunks, leave out its other side.
void require_window_of_side(const AttentionSpec& attention, const std::string& file) {
  const bool is_behind =
      attention.window.kind == WindowKind::sliding || attention.window.kind == WindowKind::chunked;
  if (attention.causal || !is_behind) return;
  throw Error(ErrorCode::invalid_input,
              "tokens that see both sides have no window behind them, but the config has both",
              file, "remove is_causal, or sliding_window");
}

/// Layers of one kind have as many heads of one size in all families that share keys.
void require_keys_to_share(const StackSpec& stack, const std::string& file) {
  // Latent vectors with and without a rotary key are of two kinds.
  std::set<std::pair<WindowKind, bool>> with_keys;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const AttentionSpec& attention = stack.attention_of(stack.variant(layer));
    const std::pair kind{attention.window.kind, attention.latent && attention.rotary};
    if (!attention.shares_key_values) {
      with_keys.insert(kind);
    } else if (!with_keys.contains(kind)) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("layer {} shares the keys of an earlier layer of its kind, and there "
                              "is none",
                              layer),
                  file, "begin with a layer of this kind that has keys of its own");
    }
  }
}

void require_consistent(const StackSpec& stack, const std::string& file) {
  require_real_norms(stack.norm, file);
  require_enough_experts(stack.ffn, file);
  require_equal_groups(stack.self_attention, file);
  require_real_scores(stack.self_attention, file);
  require_window_of_side(stack.self_attention, file);
  if (stack.shared_block) require_equal_groups(stack.shared_block->attention, file);
  bool shares = stack.self_attention.shares_key_values;
  for (const LayerVariant& variant : stack.variants) {
    require_enough_experts(variant.ffn, file);
    require_equal_groups(variant.self_attention, file);
    require_real_scores(variant.self_attention, file);
    require_window_of_side(variant.self_attention, file);
    shares = shares || variant.self_attention.shares_key_values;
  }
  if (shares) require_keys_to_share(stack, file);
}

/// tensor2tensor's sinusoids have frequencies from 1 to 1/10000: at least two.
void require_sinusoids(const ModelSpec& spec, const std::string& file) {
  constexpr std::int64_t kLeastWidth = 4;
  const PositionSpec& position = spec.position;
  const bool is_spread =
      position.kind == PositionKind::sinusoidal && position.table == PositionTable::tensor2tensor;
  if (!is_spread || spec.hidden_size >= kLeastWidth) return;
  throw Error(
      ErrorCode::invalid_input,
      fmt::format("sinusoidal positions of width {} have a single frequency", spec.hidden_size),
      file, "choose a hidden_size of at least 4");
}

}  // namespace

void require_consistent_layers(const ModelSpec& spec, const std::string& file) {
  if (spec.encoder) require_consistent(*spec.encoder, file);
  if (spec.decoder) require_consistent(*spec.decoder, file);
  require_sinusoids(spec, file);
  const StackSpec& stack = spec.main_stack();
  require_rotated_pairs(spec.position.rope, stack.self_attention, file);
  require_frequencies(spec.position.rope, file);
  if (const auto& head = spec.head.language_model) require_real_cap(head->soft_cap, file);
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const AttentionSpec& attention = stack.attention_of(variant);
    if (!attention.rope) continue;
    require_rotated_pairs(*attention.rope, attention, file);
    require_frequencies(*attention.rope, file);
  }
}

}  // namespace headroom::detail
