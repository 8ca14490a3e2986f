#include "batch_overlap.h"

#include <algorithm>

#include "planner.h"

namespace headroom::detail {
namespace {

/// Seconds of a batch outside its experts, with the collectives that nothing hides.
double others_seconds(const SectionCosts& batch) {
  return batch.forward_s - batch.experts_s + batch.forward_communication_s - batch.dispatch_s -
         batch.combine_s;
}

}  // namespace

std::optional<std::pair<Workload, Workload>> halves_of(const Workload& workload) {
  std::pair<Workload, Workload> halves{workload, workload};
  auto& [first, second] = halves;
  if (workload.batch_size > 1) {
    first.batch_size = workload.batch_size / 2;
    second.batch_size = workload.batch_size - first.batch_size;
    return halves;
  }
  if (workload.seq_len < 2) return std::nullopt;
  first.seq_len = workload.seq_len / 2;
  second.seq_len = workload.seq_len - first.seq_len;
  second.past_len = workload.past_len + first.seq_len;
  // Towers run before the tokens.
  second.images = {};
  second.audio = {};
  return halves;
}

OverlappedSeconds overlapped_layers(const SectionCosts& first, const SectionCosts& second,
                                    std::int64_t layers) {
  const double second_others = others_seconds(second);
  const double all = std::max(others_seconds(first), second.dispatch_s) +
                     std::max(second.experts_s, first.dispatch_s) +
                     std::max(first.experts_s, second.combine_s) +
                     std::max(second_others, first.combine_s);
  // The second batch's operators precede the first layer's pairs, and the first batch's last
  // combine has no operators beside it.
  const double ends = std::min(second_others, first.combine_s) / static_cast<double>(layers);
  const double compute = first.forward_s + second.forward_s;
  return {compute, all + ends - compute};
}

RankCosts overlapped(const RankCosts& whole, const RankCosts& first, const RankCosts& second,
                     const std::vector<LayerKind>& kinds) {
  RankCosts both = whole;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const SectionCosts& of_first = first.layers[i];
    const SectionCosts& of_second = second.layers[i];
    const OverlappedSeconds time = overlapped_layers(of_first, of_second, kinds[i].count);
    both.layers[i].forward_s = time.compute_s;
    both.layers[i].forward_communication_s = time.exposed_s;
    both.layers[i].weights_s = of_first.weights_s + of_second.weights_s;
    both.layers[i].compute_bound_s = of_first.compute_bound_s + of_second.compute_bound_s;
    both.layers[i].weights_bound_s = of_first.weights_bound_s + of_second.weights_bound_s;
    both.layers[i].roofline_s = of_first.roofline_s + of_second.roofline_s;
    both.layers[i].weights_roofline_s = of_first.weights_roofline_s + of_second.weights_roofline_s;
  }
  return both;
}

}  // namespace headroom::detail

namespace headroom {

const detail::RankCosts& Planner::Implementation::serving_costs(Pass pass, const ParallelPlan& plan,
                                                                const Workload& workload,
                                                                std::int64_t adapters) {
  const bool splits = plan.batch_overlap == BatchOverlap::two_batches;
  const auto halves = splits ? detail::halves_of(workload) : std::nullopt;
  if (!halves) return costs(pass, plan, workload, adapters);
  const detail::RankCosts whole = costs(pass, plan, workload, adapters);
  // A sequence has one adapter.
  const auto of_half = [adapters](const Workload& half) {
    return std::min(adapters, half.batch_size);
  };
  const detail::RankCosts first = costs(pass, plan, halves->first, of_half(halves->first));
  const detail::RankCosts& second = costs(pass, plan, halves->second, of_half(halves->second));
  overlapped_ =
      detail::overlapped(whole, first, second, pass == Pass::decode ? decode_kinds : kinds);
  return overlapped_;
}

}  // namespace headroom
