// The lightning indexer of DeepSeek V3.2, which other families have with choices of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Choices of an indexer, and the values that a config may omit.
struct IndexerDefaults {
  std::int64_t num_heads = 64;
  RopeLayout rope_layout = RopeLayout::half_split;
  std::optional<NormSpec> query_norm{};            ///< see IndexerSpec
  std::optional<TemperatureTuning> temperature{};  ///< likewise
  std::int64_t every = 1;  ///< layers per indexer without a list of them, but for the first
};

/// The sizes of an indexer beside latent attention.
[[nodiscard]] IndexerSpec read_indexer_sizes(ConfigReader& config,
                                             const LatentAttentionSpec& latent,
                                             const IndexerDefaults& absent);

/// The layers with an indexer of their own; the others use the choice of the last one before them.
/// `absent`: layers per indexer without a list of them.
[[nodiscard]] std::vector<bool> read_own_indexers(ConfigReader& config, std::int64_t num_layers,
                                                  std::int64_t absent);

/// Gives the layers of `spec`, whose latent attention is read, an indexer that chooses the keys of
/// each query (arXiv 2512.02556), or the choice of an earlier layer.
void read_indexer(ConfigReader& config, ModelSpec& spec, const IndexerDefaults& absent);

}  // namespace headroom::detail
