#include "mixing_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "headroom/complexity.h"

namespace headroom::detail {
namespace {

/// Kinds of operators between the projections.
enum class Mixing { scores, linear_attention, recurrence, convolution, indexer, keys, positions };

Mixing mixing_of_core(const Op& op) {
  if (std::holds_alternative<LinearAttention>(op)) return Mixing::linear_attention;
  const bool recurs = std::holds_alternative<GatedDelta>(op) ||
                      std::holds_alternative<StateSpaceScan>(op) ||
                      std::holds_alternative<GatedLinearRecurrence>(op) ||
                      std::holds_alternative<WeightedKeyValue>(op);
  return recurs ? Mixing::recurrence : Mixing::scores;
}

/// The kind of a node of Share::attention.
Mixing mixing_of(const Node& node) {
  const Part part = node.component.part;
  const bool convolves = part == Part::attention_convolution || part == Part::mixer_convolution;
  if (convolves) return Mixing::convolution;
  if (part == Part::mixer_scan) return Mixing::recurrence;
  if (part == Part::attention_indexer) return Mixing::indexer;
  if (part == Part::attention_compressor) return Mixing::keys;
  if (part == Part::relative_position_bias) return Mixing::positions;
  return mixing_of_core(node.op);
}

std::string words_of(Mixing mixing) {
  switch (mixing) {
    case Mixing::scores:
      break;
    case Mixing::linear_attention:
      return "linear attention";
    case Mixing::recurrence:
      return "recurrences";
    case Mixing::convolution:
      return "convolutions";
    case Mixing::indexer:
      return "the indexer";
    case Mixing::keys:
      return "the compression of keys";
    case Mixing::positions:
      return "relative positions";
  }
  return "scores and context";
}

}  // namespace

MixingWords mixing_words(const AnalyzeReport& report) {
  MixingWords words;
  std::size_t next = 0;
  for (const Block& block : report.graph.blocks) {
    for (const Node& node : block.nodes) {
      const Cost& cost = report.analysis.nodes.at(next++).cost.forward;
      const bool mixes = share_of(node.component.part) == Share::attention;
      if (!mixes || cost.matrix_flops.is_zero()) continue;
      const Mixing mixing = mixing_of(node);
      if (mixing == Mixing::scores) {
        words.has_scores = true;
        continue;
      }
      std::string word = words_of(mixing);
      const bool known = std::ranges::find(words.others, word) != words.others.end();
      if (!known) words.others.push_back(std::move(word));
    }
  }
  return words;
}

std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  const std::vector<std::string> first(words.begin(), words.end() - 1);
  return fmt::format("{} and {}", fmt::join(first, ", "), words.back());
}

}  // namespace headroom::detail
