// Folds a stack's layers into runs: [dense] × 3, [expert] × 58; or ([windowed] × 5, [full]) × 4,
// [windowed] × 2.
#include <algorithm>

#include "builder.h"

namespace headroom::detail {
namespace {

/// Layers of a stack that may be one run.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// Number of consecutive repetitions of the `period` variants at the front of `range`.
std::int64_t repeats(const StackSpec& stack, LayerRange range, std::int64_t period) {
  const std::int64_t first = range.first;
  std::int64_t count = 1;
  for (std::int64_t layer = first + period; layer < range.end; ++layer) {
    if (stack.variant(layer) != stack.variant(layer - period)) break;
    const std::int64_t done = layer + 1 - first;
    if (done % period == 0) count = done / period;
  }
  return count;
}

/// Returns whether repetitions of these variants would read an indexer's choice from the repetition
/// before: the first variant has no indexer of its own, and a later one has.
bool reads_repetition_before(const StackSpec& stack, const std::vector<std::size_t>& variants) {
  const auto has_own = [&](std::size_t variant) {
    const auto& indexer = stack.attention_of(variant).indexer;
    return indexer && indexer->place == IndexerPlace::here;
  };
  const auto& first = stack.attention_of(variants.front()).indexer;
  return first && first->place == IndexerPlace::earlier_layer &&
         std::ranges::any_of(variants, has_own);
}

/// The longest run at the front of `range`; among equals, the one with the shortest period.
LayerRun longest_run(const StackSpec& stack, LayerRange range) {
  const std::int64_t first = range.first;
  // Published models alternate within 8 layers.
  constexpr std::int64_t kLongestPeriod = 16;
  LayerRun best{first, repeats(stack, range, 1), {stack.variant(first)}};
  for (std::int64_t period = 2; period <= kLongestPeriod; ++period) {
    if (first + 2 * period > range.end) break;
    const std::int64_t repeat = repeats(stack, range, period);
    if (repeat < 2 || repeat * period <= best.layers()) continue;
    LayerRun run{first, repeat, {}};
    for (std::int64_t i = 0; i < period; ++i) run.variants.push_back(stack.variant(first + i));
    if (!reads_repetition_before(stack, run.variants)) best = std::move(run);
  }
  return best;
}

/// Runs within the blocks of attention residuals. The first layer of a block is a run of its own:
/// later ones read the hidden states in front of it.
std::vector<LayerRun> runs_within_blocks(const StackSpec& stack) {
  std::vector<LayerRun> runs;
  const std::int64_t block = stack.residual_block;
  for (std::int64_t layer = 0; layer < stack.num_layers; layer += runs.back().layers()) {
    const bool begins = layer % block == 0;
    const std::int64_t end = begins ? layer + 1 : (layer / block + 1) * block;
    runs.push_back(longest_run(stack, {layer, std::min(end, stack.num_layers)}));
  }
  return runs;
}

/// Runs between block connections. A layer in front of which hidden states are kept, or mixed, is a
/// run of its own: later repetitions would overwrite them.
std::vector<LayerRun> runs_between_connections(const StackSpec& stack,
                                               const std::set<std::int64_t>& sources) {
  const auto is_alone = [&](std::int64_t layer) {
    return sources.contains(layer) || !stack.attention_of(stack.variant(layer)).connections.empty();
  };
  std::vector<LayerRun> runs;
  for (std::int64_t layer = 0; layer < stack.num_layers; layer += runs.back().layers()) {
    std::int64_t end = layer + 1;
    while (!is_alone(layer) && end < stack.num_layers && !is_alone(end)) ++end;
    runs.push_back(longest_run(stack, {layer, end}));
  }
  return runs;
}

/// Runs of layers, in which only the first may use a shared block. The stack's first layer is a run
/// of its own: all blocks read its input, which later layers of a run would overwrite.
std::vector<LayerRun> runs_between_uses(const StackSpec& stack) {
  std::vector<LayerRun> runs;
  const std::vector<std::int64_t>& uses = stack.shared_block->layers;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const auto uses_block = [&](std::int64_t l) {
      return std::ranges::find(uses, l) != uses.end();
    };
    const bool begins = layer <= 1 || uses_block(layer) || uses_block(layer - 1);
    if (begins) {
      runs.push_back({layer, 1, {stack.variant(layer)}});
    } else {
      ++runs.back().repeat;
    }
  }
  return runs;
}

}  // namespace

std::vector<LayerRun> layer_runs(const StackSpec& stack) {
  if (stack.shared_block) return runs_between_uses(stack);
  if (stack.residual_block > 0) return runs_within_blocks(stack);
  const std::set<std::int64_t> sources = connection_sources(stack);
  if (!sources.empty()) return runs_between_connections(stack, sources);
  if (stack.variant_of_layer.empty()) {
    const bool splits = stack.input_convolution && stack.num_layers > 1;
    if (!splits) return {{0, stack.num_layers, {0}}};
    return {{0, 1, {0}}, {1, stack.num_layers - 1, {0}}};
  }
  std::vector<LayerRun> runs;
  for (std::int64_t layer = 0; layer < stack.num_layers; layer += runs.back().layers()) {
    runs.push_back(longest_run(stack, {layer, stack.num_layers}));
  }
  return runs;
}

std::vector<LayerRun> cut_after(const std::vector<LayerRun>& runs,
                                const std::vector<std::int64_t>& layers) {
  std::vector<LayerRun> cut;
  for (LayerRun rest : runs) {
    while (rest.repeat > 0) {
      LayerRun next = rest;
      for (const std::int64_t layer : layers) {
        const std::int64_t inside = layer - rest.first_layer;
        if (inside > 0 && inside < next.layers() && rest.variants.size() == 1) next.repeat = inside;
      }
      rest.first_layer += next.layers();
      rest.repeat -= next.repeat;
      cut.push_back(std::move(next));
    }
  }
  return cut;
}

}  // namespace headroom::detail
