// Maps canonical weight paths to stored names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"
#include "stored_names.h"

namespace headroom::detail {

/// The name table of the model's family for safetensors. Throws Error{invalid_input} if the family
/// has no stored weights.
[[nodiscard]] NameTable name_table(const ModelSpec& spec);

/// The model's name table for GGUF files.
[[nodiscard]] NameTable gguf_name_table(const ModelSpec& spec);

/// The kind of extra tensor; empty if `name` is none.
[[nodiscard]] std::optional<ExtraKind> extra_kind(const NameTable& table, std::string_view name);

/// Rules for extra tensors of any family.
[[nodiscard]] std::span<const ExtraRule> common_extras();

/// A stored name with placeholders for layer and expert.
struct StoredName {
  std::string pattern;
  StoredLayout layout;
};

/// All stored names of a canonical path such as "encoder.layers.mlp.up.weight", without an optional
/// prefix; empty if the table lacks the path.
[[nodiscard]] std::vector<StoredName> find_stored_names(const NameTable& table,
                                                        std::string_view path);

/// Those names. Throws Error{internal} if the table lacks the path.
[[nodiscard]] std::vector<StoredName> stored_names(const NameTable& table, std::string_view path);

/// The paths that share the tensor `name` of `path`, in stacking order and including `path`.
[[nodiscard]] std::vector<std::string> stacked_paths(const NameTable& table, std::string_view path,
                                                     const StoredName& name);

/// Number of tensors that `pattern` joins to one weight: 3 if it has {qkv}, else 1.
[[nodiscard]] std::int64_t joined_tensors(std::string_view pattern);

/// Fills the placeholders of `pattern`; `expert` is also the index of a joined tensor.
[[nodiscard]] std::string filled(std::string_view pattern, std::int64_t layer, std::int64_t expert);

/// Returns true if each layer has its own name.
[[nodiscard]] bool names_layer(std::string_view pattern);

/// Returns true if each expert has its own name.
[[nodiscard]] bool names_experts(std::string_view pattern);

}  // namespace headroom::detail
