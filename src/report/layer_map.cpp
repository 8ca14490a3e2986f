// The layers of the main stack as bars: matrix FLOPs of each, coloured by how it mixes positions.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "picture.h"
#include "pictures.h"
#include "units.h"

namespace headroom::detail {
namespace {

/// "full attention", "window 4096", or the mixer in place of attention.
std::string mixer_name(const AttentionSpec& attention) {
  switch (attention.kind) {
    case AttentionKind::softmax:
      break;
    case AttentionKind::linear:
      return "linear attention";
    case AttentionKind::gated_delta:
      return "gated delta";
    case AttentionKind::short_convolution:
      return "short convolution";
    case AttentionKind::state_space:
      return "state space";
    case AttentionKind::gated_recurrence:
      return "gated recurrence";
    case AttentionKind::weighted_key_value:
      return "WKV";
    case AttentionKind::time_mix:
      return "time mixing";
    case AttentionKind::matrix:
      return "a matrix";
    case AttentionKind::none:
      return "feed-forward only";
  }
  if (attention.window.kind == WindowKind::none) return "full attention";
  return fmt::format("window {}", attention.window.size);
}

/// Matrix FLOPs of each layer of decoders and single stacks, by its index in the stack.
std::map<std::int64_t, Integer> flops_by_layer(const AnalyzeReport& report) {
  const Bindings values = bindings_of(report.workload, report.graph);
  std::map<std::int64_t, Integer> flops;
  std::size_t first = 0;
  for (const headroom::Block& block : report.graph.blocks) {
    const auto runs = block.repeat.evaluate_int64(values);
    for (std::size_t i = 0; block.is_layers() && i < block.nodes.size(); ++i) {
      const NodeAnalysis& node = report.analysis.nodes.at(first + i);
      const Integer all = node.cost.forward.matrix_flops.evaluate(values);
      for (std::int64_t run = 0; run < runs; ++run) {
        flops[block.layer_of(block.nodes[i], run)] += all / runs;
      }
    }
    first += block.nodes.size();
  }
  return flops;
}

}  // namespace

std::string layer_map(const AnalyzeReport& report) {
  const ModelSpec& spec = report.model.spec;
  if (spec.kind != ModelKind::decoder) return {};
  const StackSpec& stack = spec.main_stack();
  const std::map<std::int64_t, Integer> flops = flops_by_layer(report);
  if (flops.empty() || flops.rbegin()->first >= stack.num_layers) return {};
  Integer largest = 0;
  for (const auto& [layer, count] : flops) largest = std::max(largest, count);
  const Unit unit = operation_unit(largest, OperationUnit::flop);
  std::vector<PlotSeries> kinds;
  for (const auto& [layer, count] : flops) {
    const std::string name = mixer_name(stack.attention_of(stack.variant(layer)));
    auto kind = std::ranges::find(kinds, name, &PlotSeries::name);
    if (kind == kinds.end()) kind = kinds.insert(kind, PlotSeries{name, Drawn::ranges});
    const auto x = static_cast<double>(layer);
    const double y = static_cast<double>(count) / static_cast<double>(unit.size);
    kind->points.push_back(
        {x, 0, fmt::format("layer {}: {}, {:.4g} {}", layer, name, y, unit.name)});
    kind->points.push_back({x, y});
  }
  if (kinds.size() < 2) return {};  // equal layers are no picture
  std::string words = "Layers: ";
  for (const PlotSeries& kind : kinds) {
    words += fmt::format("{}{} of {}", &kind == kinds.data() ? "" : ", ", kind.points.size() / 2,
                         kind.name);
  }
  return plot({"Layers by kind and matrix FLOPs",
               words,
               {"layer"},
               {fmt::format("matrix FLOPs [{}]", unit.name)},
               std::move(kinds),
               {}});
}

}  // namespace headroom::detail
