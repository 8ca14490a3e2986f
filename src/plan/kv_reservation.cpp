#include "kv_reservation.h"

#include <algorithm>

#include "stage_layout.h"

namespace headroom::detail {
namespace {

std::size_t block_index(const Graph& graph, const Block* block) {
  return static_cast<std::size_t>(block - graph.blocks.data());
}

KvCacheRequest raised(KvCacheRequest request, const Workload& workload) {
  const std::int64_t tokens = checked_int64(Integer{workload.past_len} + workload.seq_len);
  if (request.capacity) request.capacity = std::max(*request.capacity, tokens);
  if (request.slots) request.slots = std::max(*request.slots, workload.batch_size);
  return request;
}

}  // namespace

bool needs_reservation(const KvCacheRequest& request) noexcept {
  return asks_for_policy(request) || request.key_type || request.value_type;
}

KvReservation kv_reservation(const ModelSpec& spec, const Graph& graph, const Workload& workload,
                             KvCacheRequest request, std::size_t kinds) {
  KvReservation result{std::vector<Integer>(kinds), std::vector<Integer>(kinds)};
  const auto use = kv_cache_use(spec, graph, workload, raised(request, workload));
  if (!use) return result;
  const SectionMap sections(graph);
  const Bindings values = bindings_of(workload, graph);
  std::size_t row = 0;
  for (const CacheTensor& cache : cache_tensors(graph)) {
    const std::size_t kind = sections.of(block_index(graph, cache.block), *cache.node).layer_kind;
    const Expr bytes = cache.block->repeat * graph.tensors[cache.tensor].elements() *
                       bytes_of(graph.tensors[cache.tensor].type);
    result.counted[kind] = checked_add(result.counted[kind], bytes.evaluate(values));
    result.reserved[kind] = checked_add(result.reserved[kind], use->rows.at(row++).reserved_bytes);
  }
  return result;
}

std::vector<Integer> reserved_on_rank(const KvReservation& whole,
                                      const std::vector<Integer>& counted) {
  std::vector<Integer> result;
  for (std::size_t kind = 0; kind < counted.size(); ++kind) {
    const Integer all = whole.counted.at(kind);
    result.push_back(
        all == 0 ? 0 : ceil_div(checked_multiply(counted[kind], whole.reserved.at(kind)), all));
  }
  return result;
}

}  // namespace headroom::detail
