#include <utility>

#include "headroom/report.h"

namespace headroom {

PresetsReport make_presets_report(const std::vector<Preset>& presets) {
  PresetsReport report;
  for (const Preset& preset : presets) {
    Model model = read_preset(preset);
    const Graph graph = build_graph(model.spec, {});
    const Integer parameters = count_parameters(graph).total.evaluate(graph.sizes);
    report.presets.push_back({preset, std::move(model), parameters});
  }
  return report;
}

}  // namespace headroom
