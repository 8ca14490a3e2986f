// The lightning indexer of DeepSeek V3.2, which other families have with choices of their own.
#pragma once

#include <cstdint>
#include <optional>

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

/// Gives the layers of `spec`, whose latent attention is read, an indexer that chooses the keys of
/// each query (arXiv 2512.02556), or the choice of an earlier layer.
void read_indexer(ConfigReader& config, ModelSpec& spec, const IndexerDefaults& absent);

}  // namespace headroom::detail
