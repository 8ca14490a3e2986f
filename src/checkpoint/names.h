// From canonical weight paths to the names that files store: one small table a family, each in a
// file of its own under names/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"
#include "stored_layout.h"

namespace headroom::checkpoint {

/// One rule: the end of a canonical path, and the stored name, where {} is the layer, {e} the
/// expert, and % in both is "weight" or "bias".
struct NameRule {
  std::string_view canonical;
  std::string_view stored;
  StoredLayout layout{};
};

/// Stored tensors that are no weights of the model: buffers, weights that are stored twice, or
/// parts of a larger model.
enum class ExtraKind {
  causal_mask,
  position_ids,
  rotary_buffer,
  router_bias,             ///< a buffer that balances the load of experts
  kv_cache_scale,          ///< of a quantised KV-cache
  head_buffer,             ///< a bias of logits that is not trained
  tied_copy,               ///< a weight that the model has under another name
  untied_head,             ///< a head with values of its own, where the config says it is tied
  unused_head,             ///< trained with the model, and no part of it
  multi_token_prediction,  ///< layers beyond the model's own
  vision_tower,            ///< and what projects images or sound into the text model
};

/// In words: "rotary buffer".
[[nodiscard]] std::string_view name_of(ExtraKind kind) noexcept;

enum class NamePart { ending, beginning };

struct ExtraRule {
  std::string_view text;
  ExtraKind kind = ExtraKind::tied_copy;
  NamePart where = NamePart::ending;
};

/// The names of one model. Where several rules fit a path they are alternatives: the first whose
/// tensor is there counts.
struct NameTable {
  std::vector<std::span<const NameRule>> rules;
  std::vector<std::string_view> optional_prefixes;  ///< may stand before every name
  std::vector<ExtraRule> extras;
};

/// The table of the model's family in safetensors. Throws Error{invalid_input} for one without
/// stored weights.
[[nodiscard]] NameTable name_table(const ModelSpec& spec);

/// The table of the model's names in GGUF files.
[[nodiscard]] NameTable gguf_name_table(const ModelSpec& spec);

/// The kind of extra that a stored name is, if it is one.
[[nodiscard]] std::optional<ExtraKind> extra_kind(const NameTable& table, std::string_view name);

/// The rules for extras that any family may have.
[[nodiscard]] std::span<const ExtraRule> common_extras();

/// A stored name with its placeholders for layer and expert still in it.
struct StoredName {
  std::string pattern;
  StoredLayout layout;
};

/// All names under which a canonical path such as "encoder.layers.mlp.up.weight" may be stored,
/// without an optional prefix. Throws Error{internal} for a path that the table lacks.
[[nodiscard]] std::vector<StoredName> stored_names(const NameTable& table, std::string_view path);

/// The paths that share the tensor of `name`, a name of `path`, in the order in which they are
/// stacked; `path` itself is one of them.
[[nodiscard]] std::vector<std::string> stacked_paths(const NameTable& table, std::string_view path,
                                                     const StoredName& name);

/// `pattern` with its placeholders filled.
[[nodiscard]] std::string filled(std::string_view pattern, std::int64_t layer, std::int64_t expert);

/// Whether each expert has a name of its own.
[[nodiscard]] bool names_experts(std::string_view pattern);

}  // namespace headroom::checkpoint
