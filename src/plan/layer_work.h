// Weights, KV-cache and seconds of a served model by layer, its routed experts apart, on a device
// and on its host. Internal to src/plan.
#pragma once

#include <vector>

#include "headroom/memory_split.h"

namespace headroom::detail {

/// Seconds of a pass through a part of the model, by its place.
struct PlaceSeconds {
  BoundSeconds on_device;
  BoundSeconds on_host;
  /// With weights on the host that are copied to the device: without the copies, and operators that
  /// read no weights on the host.
  BoundSeconds copied;
};

struct PartWork {
  Integer weight_bytes = 0;
  PlaceSeconds decode;  ///< of all sequences, the last token of their context
  PlaceSeconds prompt;  ///< of one prompt
};

struct LayerWork {
  PartWork experts;  ///< operators with the weights of routed experts
  PartWork others;
  Integer kv_cache_bytes = 0;  ///< all sequences, as the query's policy reserves it
};

struct ModelWork {
  PartWork input;  ///< before the first layer
  std::vector<LayerWork> layers;
  PartWork output;           ///< after the last layer, without the tied table
  Integer tied_bytes = 0;    ///< of weights that the input and the output read
  Integer unused_bytes = 0;  ///< of weights without an operator: image towers
  Integer hidden_bytes = 0;  ///< of one token between layers
  bool has_experts = false;
};

/// The work of `question` on its device and `host`. Throws Error{invalid_input} for layers that
/// share weights.
[[nodiscard]] ModelWork model_work(const PlanQuestion& question, const HostRates& host);

}  // namespace headroom::detail
