// Values of the planner's options, parsed from text.
#pragma once

#include <string>

#include "headroom/plan.h"

namespace headroom::cli {

/// Parses "80GB", "79.1GiB" or "1024" as bytes. Throws a usage error.
[[nodiscard]] Integer parse_bytes(const std::string& names, const std::string& text);

/// As `parse_bytes`, at least one byte: a memory of none holds nothing, and a bandwidth of none
/// never ends.
[[nodiscard]] Integer parse_positive_bytes(const std::string& names, const std::string& text);

/// Parses "500ms", "0.5s" or "2min" as seconds above 0. Throws a usage error.
[[nodiscard]] double parse_seconds(const std::string& names, const std::string& text);

/// Parses a number above 0 and at most `most`. Throws a usage error.
[[nodiscard]] double parse_positive(const std::string& names, const std::string& text, double most);

/// Parses "none", "selective", "full", "every=4" or "layernorm,mlp". Throws a usage error.
[[nodiscard]] Recomputation parse_recomputation(const std::string& names, const std::string& word);

/// Parses "on" or "off"; no word means on. Throws a usage error.
[[nodiscard]] SequenceParallel parse_sequence_parallel(const std::string& names,
                                                       const std::string& word);
[[nodiscard]] BatchOverlap parse_batch_overlap(const std::string& names, const std::string& word);
[[nodiscard]] TensorOverlap parse_tensor_overlap(const std::string& names, const std::string& word);

/// Parses a factor of at least 1. Throws a usage error.
[[nodiscard]] double parse_imbalance(const std::string& names, const std::string& text);

/// Parses a fraction in [0.001, 1]. Throws a usage error.
[[nodiscard]] double parse_efficiency(const std::string& names, const std::string& text);

}  // namespace headroom::cli
