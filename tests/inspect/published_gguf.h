// Metadata of published models, as converters write them, and their published parameters.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace headroom::test {

struct GgufCounts {
  std::uint32_t context = 2048;
  std::uint32_t width = 0;
  std::uint32_t layers = 0;
  std::uint32_t inner = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t words = 0;
};

struct PublishedGguf {
  const char* model;
  const char* architecture;
  GgufCounts counts;
  std::vector<std::pair<std::string, std::uint32_t>> more;
  std::vector<std::string> tensors;  ///< tensors whose presence matters
  std::int64_t parameters;
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> lists{};  ///< one per layer
};

/// A file with the metadata of `model`, and tensors of one zero.
[[nodiscard]] std::string file_of(const PublishedGguf& model);

/// Models of attention and feed-forward networks or experts.
[[nodiscard]] std::vector<PublishedGguf> published_decoders();
/// Models whose layers differ: state spaces, convolutions.
[[nodiscard]] std::vector<PublishedGguf> published_hybrids();

}  // namespace headroom::test
