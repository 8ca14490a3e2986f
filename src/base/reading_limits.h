// Budgets of the readers of text from outside: beyond them a file is refused, whatever it holds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::detail {

/// Bytes of a JSON file. Published config.json files stay under 1 MiB; the largest list label
/// names.
inline constexpr std::size_t kMostTextBytes = std::size_t{64} << 20U;

/// Levels of nesting. Published config.json files nest four deep.
inline constexpr int kDeepestNesting = 64;

/// Values in a JSON file; parsed, each takes 16 bytes and more. Inputs of a run list tokens, of
/// which the longest published contexts have 10 million.
inline constexpr std::size_t kMostJsonValues = 16'000'000;

/// Layers of a model, which may be listed one by one. Published models have at most a few hundred.
inline constexpr std::int64_t kMostLayers = 100'000;

/// Keys of a config that its family does not know, each of which a note lists. Published configs
/// have at most a few dozen.
inline constexpr std::size_t kMostUnknownKeys = 1000;

/// The largest size in a config, so that readers' sums and small multiples fit 64 bits. Exact as a
/// double.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 56U;

}  // namespace headroom::detail
