#include <utility>

#include "headroom/storage.h"

namespace headroom {

Graph with_stored_bytes(Graph graph, const StoredWeights& stored) {
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    graph.weights[id].stored_bytes = stored.weights.at(id).bytes;
    graph.weights[id].stored_bytes_of_copy = stored.weights.at(id).bytes_of_copy;
  }
  return graph;
}

Graph build_stored_graph(const ModelSpec& spec, const GraphOptions& options) {
  Graph graph = build_graph(spec, options);
  const StoredWeights stored = stored_weights(spec, graph);
  return with_stored_bytes(std::move(graph), stored);
}

ModelSpec converted(ModelSpec spec, const std::optional<WeightForm>& form) {
  return form ? stored_as(std::move(spec), *form) : spec;
}

}  // namespace headroom
