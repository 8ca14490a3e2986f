// AssociativityReport -> Document: the formulas of both orders, then the study of both layers.
#include <fmt/format.h>

#include "describe.h"
#include "study_words.h"
#include "writers.h"

namespace headroom::detail {
namespace {

Formula core_formula(const LayerComplexity& layer, const char* name, std::int64_t length) {
  Bindings values = layer.graph.sizes;
  values.set(Symbol::seq_len, length);
  const Expr& formula = layer.core->formula;
  return {name,
          {format(formula), format_with_values(formula, values),
           with_separators(layer.core->by_length.at(length)) + " FLOP"}};
}

}  // namespace

std::string verdict_of(const ComplexityReport& report) {
  const CrossoverRow& row = report.core_crossovers.front();
  if (!row.flops) return "equal FLOPs";
  const std::string cheaper =
      row.above == 0 ? "queries·(keysᵀ·values) costs less" : "(queries·keysᵀ)·values costs less";
  return *row.flops == 1 ? cheaper + " at any length"
                         : fmt::format("{} from s = {}", cheaper, with_separators(*row.flops));
}

Document to_document(const AssociativityReport& report) {
  const ComplexityReport& layers = report.layers;
  const LayerComplexity& softmax = layers.layers[0].layer;
  const LayerComplexity& linear = layers.layers[1].layer;
  const std::int64_t longest = layers.lengths.back();
  Document document;
  document.add_line(name_of(softmax), describe(softmax.model.spec));
  const std::vector<Line> legend = legend_of(layers).lines();
  add_lines(legend, document);
  document.add_line("", "φ feature map of linear attention, in place of the softmax");
  document.add_verdict("verdict", verdict_of(layers));
  document.blocks.push_back(Heading{fmt::format("Matrix FLOPs of token mixing, s = {}", longest)});
  document.blocks.push_back(core_formula(softmax, "softmax(queries·keysᵀ)·values", longest));
  document.blocks.push_back(core_formula(linear, "φ(queries)·(φ(keys)ᵀ·values)", longest));
  Document rest = to_document(layers);
  // Without its legend and workload, which stand above.
  const auto above = static_cast<std::ptrdiff_t>(legend.size()) + 1;
  document.blocks.insert(document.blocks.end(), rest.blocks.begin() + above, rest.blocks.end());
  return document;
}

}  // namespace headroom::detail
