// From canonical weight paths to the names that files store.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"
#include "stored/stored_names.h"

namespace headroom::detail {

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

}  // namespace headroom::detail
