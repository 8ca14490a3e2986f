// Attention of one query to a KV-cache, as in decoding: as fast as the cache is read, so it goes up
// and down with the memory.
#include <omp.h>

#include <algorithm>
#include <iterator>

#include "attention_operands.h"
#include "probes.h"

namespace headroom::measured {
namespace {

Operands step(const KernelSizes& s) {
  return Operands::of_step({whole(s[0]), whole(s[1]), whole(s[3])}, whole(s[2]));
}

AlignedVector<float> scores_of(const KernelSizes& s) { return filled(whole(s[0] * s[1] * s[2])); }

}  // namespace

void probe_cached_attention(Budget budget, std::vector<KernelTable>& tables) {
  budget.pace = Pace::memory;
  constexpr double kMost = kMostWork / 3;
  const auto scores = [&](const KernelSizes& s) {
    Operands operands = step(s);
    AlignedVector<float> out = scores_of(s);
    return time_call(budget,
                     [&](std::int64_t /*i*/) { attention_scores(operands.next(), out.data()); });
  };
  const auto context = [&](const KernelSizes& s) {
    Operands operands = step(s);
    const AlignedVector<float> probabilities = scores_of(s);
    return time_call(budget, [&](std::int64_t /*i*/) {
      attention_context(operands.next(), probabilities.data());
    });
  };
  const auto fused = [&](const KernelSizes& s) {
    Operands operands = step(s);
    AlignedVector<float> scratch =
        filled(fused_attention_scratch_floats(operands.args(), omp_get_max_threads()));
    return time_call(budget,
                     [&](std::int64_t /*i*/) { fused_attention(operands.next(), scratch.data()); });
  };
  constexpr std::size_t kRounds = 3;
  std::vector<std::vector<KernelTable>> rounds(3);
  for (std::size_t round = 0; round < kRounds; ++round) {
    rounds[0].push_back(sweep_up_to(budget, KernelKind::attention_scores_cached, kMost, scores));
    rounds[1].push_back(sweep_up_to(budget, KernelKind::attention_context_cached, kMost, context));
    rounds[2].push_back(sweep_up_to(budget, KernelKind::attention_fused_cached, kMost, fused));
  }
  std::ranges::transform(rounds, std::back_inserter(tables), median_of);
}

}  // namespace headroom::measured
