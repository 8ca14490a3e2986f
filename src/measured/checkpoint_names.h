// From canonical weight paths to the names that checkpoints store: one small table a family.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// How a stored tensor holds the weight that is wanted.
enum class StoredLayout {
  as_is,
  transposed,  ///< [in, out] in the place of [out, in] (GPT-2's Conv1D)
  third_0,     ///< rows of the query in a stack of query, key and value
  third_1,     ///< rows of the key
  third_2,     ///< rows of the value
  transposed_third_0,
  transposed_third_1,
  transposed_third_2,
};

/// One rule: a canonical path, and the stored name, where {} is the layer and % is "weight" or
/// "bias".
struct NameRule {
  std::string_view canonical;
  std::string_view stored;
  StoredLayout layout = StoredLayout::as_is;
};

/// A family's rules, what may stand before every name, and stored tensors that are no weights
/// (buffers, or copies of tied weights).
struct NameTable {
  std::array<std::span<const NameRule>, 2> rules;  ///< the first that fits counts
  std::string_view optional_prefix;
  std::span<const std::string_view> ignored_endings;
};

/// The table of the model's family. Throws Error{invalid_input} for one without stored weights.
[[nodiscard]] NameTable checkpoint_names(const ModelSpec& spec);

/// Where a weight is stored.
struct StoredName {
  std::string name;
  StoredLayout layout = StoredLayout::as_is;
};

/// The stored name of a canonical path such as "encoder.layers.mlp.up.weight" in one layer, without
/// the optional prefix. Throws Error{internal} for a path that the table lacks.
[[nodiscard]] StoredName stored_name(const NameTable& table, std::string_view path,
                                     std::int64_t layer);

}  // namespace headroom::measured
