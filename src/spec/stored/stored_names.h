// Names under which a family's files store its weights: the data types of one table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stored_layout.h"

namespace headroom::detail {

/// Maps the end of a canonical weight path to a stored name. In the stored name {} is the layer and
/// {e} the expert; % in both is "weight" or "bias".
struct NameRule {
  std::string_view canonical;
  std::string_view stored;
  StoredLayout layout{};
};

/// Stored tensors that are not weights of the model: buffers, second copies, or parts of a larger
/// model.
enum class ExtraKind {
  causal_mask,
  position_ids,
  rotary_buffer,
  router_bias,             ///< a buffer that balances the load of experts
  kv_cache_scale,          ///< of a quantised KV-cache
  head_buffer,             ///< a bias of logits that is not trained
  tied_copy,               ///< a weight that the model has under another name
  untied_head,             ///< a head with its own values, where the config says it is tied
  unused_head,             ///< trained with the model, and not part of it
  multi_token_prediction,  ///< layers after the model's own
  vision_tower,            ///< and the projector from images or sound to the text model
};

/// In words: "rotary buffer".
[[nodiscard]] std::string_view name_of(ExtraKind kind) noexcept;

enum class NamePart { ending, beginning };

/// Recognises an extra tensor by the end or the beginning of its stored name.
struct ExtraRule {
  std::string_view text;
  ExtraKind kind = ExtraKind::tied_copy;
  NamePart where = NamePart::ending;
};

/// The stored names of one family. Several rules for one path are alternatives: the first whose
/// tensor exists counts.
struct NameTable {
  std::vector<std::span<const NameRule>> rules;
  std::vector<std::string_view> optional_prefixes;  ///< may precede every name
  std::vector<ExtraRule> extras;
};

/// Rules that several families share.
[[nodiscard]] std::span<const NameRule> llama_rules();
[[nodiscard]] std::span<const NameRule> query_key_norm_rules();
[[nodiscard]] std::span<const NameRule> bert_rules();
[[nodiscard]] std::span<const NameRule> bloom_rules();
/// A router and its experts as Qwen and DeepSeek store them.
[[nodiscard]] std::span<const NameRule> routed_expert_rules();
/// A router and its experts as Mixtral stores them.
[[nodiscard]] std::span<const NameRule> mixtral_expert_rules();

/// The names of a decoder stored like Llama, `own` rules first.
[[nodiscard]] NameTable llama_names(std::vector<std::span<const NameRule>> own = {});

}  // namespace headroom::detail
