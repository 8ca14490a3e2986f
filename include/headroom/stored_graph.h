// Graphs whose weights have the bytes that the model's files store.
#pragma once

#include "headroom/graph.h"
#include "headroom/weight_storage.h"

namespace headroom {

/// `graph` with the stored bytes of every weight. `stored` must come from `stored_weights`.
[[nodiscard]] Graph with_stored_bytes(Graph graph, const StoredWeights& stored);

/// The graph of `spec` with its weights as they are stored. Throws as build_graph does.
[[nodiscard]] Graph build_stored_graph(const ModelSpec& spec, const GraphOptions& options);

/// `spec` with its weights converted to `type`; unchanged without one.
[[nodiscard]] ModelSpec converted(ModelSpec spec, std::optional<WeightType> type);

/// "int4"; without a type "stored", as the files store them.
[[nodiscard]] std::string_view name_of(std::optional<WeightType> type) noexcept;

}  // namespace headroom
