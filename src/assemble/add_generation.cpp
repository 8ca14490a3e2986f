// The KV-cache at the end of a generation.
#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/report.h"
#include "setting_format.h"

namespace headroom {

void add_generation(AnalyzeReport& report, const KvCacheRequest& request, std::int64_t new_tokens) {
  const ModelSpec& spec = report.model.spec;
  require_generates(spec);
  if (report.workload.phase != Phase::prefill) {
    throw_invalid_input("a generation starts with the prefill of its prompt",
                        fmt::format("leave out {}, or the new tokens", Setting::phase));
  }
  // The last step, which reads the whole cache.
  const Workload step = decode_step(report.workload, new_tokens - 1);
  for (std::string& note : notes_on(step, spec)) {
    const bool is_new = std::ranges::find(report.notes, note) == report.notes.end();
    if (is_new) report.notes.push_back(std::move(note));
  }
  const Graph graph = build_graph(spec, graph_options(step));
  if (auto use = kv_cache_use(spec, graph, step, request)) {
    report.generation = GenerationCache{new_tokens, *std::move(use)};
  }
}

}  // namespace headroom
