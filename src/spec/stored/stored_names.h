// Stored names of a family's weights: the data types of one table.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "stored_layout.h"

namespace headroom::detail {

/// Maps the end of a canonical weight path to a stored name. In the stored name {} is the layer and
/// {e} the expert; in both, {i} is a number in the path and % is "weight" or "bias". A name with
/// {qkv} stands for the tensors of q, k and v, whose rows together are the weight. {block 0} is the
/// first layer that uses shared block 0.
struct NameRule {
  std::string_view canonical;
  std::string_view stored;
  StoredLayout layout{};
};

/// Stored tensors that are not weights of the model: buffers, duplicates, or parts of a larger
/// model.
enum class ExtraKind {
  causal_mask,
  position_ids,
  rotary_buffer,
  router_bias,             ///< a buffer for balancing the load of experts
  kv_cache_scale,          ///< of a quantised KV-cache
  head_buffer,             ///< an untrained bias of the logits
  tied_copy,               ///< a duplicate of a weight with another name
  untied_head,             ///< separate values for a head that the config calls tied
  unused_head,             ///< a head that only training uses
  unused_key_values,       ///< projections of a layer that shares an earlier one's keys
  unused_norm,             ///< of a layer that has none
  unused_part,             ///< an adapter or a bias that the config leaves out
  layer_constant,          ///< an untrained number of a layer
  decay_buffer,            ///< decays of lightning attention, computed from the layer's number
  multi_token_prediction,  ///< layers after the model's last
  speech_output,           ///< a talker or vocoder, which speaks the text model's words
  vision_tower,            ///< with the projector from images or sound to the text model
};

/// Its description: "rotary buffer".
[[nodiscard]] std::string_view name_of(ExtraKind kind) noexcept;

enum class NamePart { ending, beginning };

/// Recognises an extra tensor by the beginning or end of its stored name.
struct ExtraRule {
  std::string_view text;
  ExtraKind kind = ExtraKind::tied_copy;
  NamePart where = NamePart::ending;
};

/// The stored names of one family. Rules for one path are alternatives: the first whose tensor
/// exists applies.
struct NameTable {
  std::vector<std::span<const NameRule>> rules;
  std::vector<std::string_view> optional_prefixes;  ///< may precede every name
  std::vector<ExtraRule> extras;
};

/// Rules shared by several families.
[[nodiscard]] std::span<const NameRule> llama_rules();
[[nodiscard]] std::span<const NameRule> query_key_norm_rules();
/// Norms before and after attention and FFN, as stored by Gemma 2.
[[nodiscard]] std::span<const NameRule> sandwich_norm_rules();
[[nodiscard]] std::span<const NameRule> bert_rules();
[[nodiscard]] std::span<const NameRule> bloom_rules();
/// Routers and experts as stored by Qwen and DeepSeek.
[[nodiscard]] std::span<const NameRule> routed_expert_rules();
/// Routers and experts as stored by Mixtral.
[[nodiscard]] std::span<const NameRule> mixtral_expert_rules();
/// Output norms and the fused network of GLM-4.
[[nodiscard]] std::span<const NameRule> glm_rules();
/// Routers and experts as stored by Granite.
[[nodiscard]] std::span<const NameRule> granite_expert_rules();

/// Names of a decoder stored like Llama; `own` rules come first.
[[nodiscard]] NameTable llama_names(std::vector<std::span<const NameRule>> own = {});

/// Names of an encoder stored like RoBERTa, after `prefix`; `own` rules come first.
[[nodiscard]] NameTable roberta_names(std::string_view prefix,
                                      std::vector<std::span<const NameRule>> own = {});

}  // namespace headroom::detail
