// Attention of one query to a KV-cache, as in decoding: from memory, where much of its time goes up
// and down with the memory's pace, and from a cache.
#include <omp.h>

#include <functional>

#include "attention_operands.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

/// Bytes of keys and values that stay in a last cache, be it shared with others.
constexpr std::int64_t kWarmBytes = std::int64_t{4} << 20;

/// Bytes beyond which a step takes in proportion to them.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

/// Each of which comes behind a read, so that few of them are taken.
constexpr int kColdSamples = 3;

/// In which the rounds of a kernel stay, if they can.
constexpr double kMostSeconds = 2.5;

/// One of the three kernels on `scratch`, which has room for what it needs.
using Kernel = std::function<void(const AttentionArguments&, float* scratch)>;

struct StepKernel {
  KernelKind cold;
  KernelKind warm;
  Kernel run;
};

const std::vector<StepKernel>& step_kernels() {
  static const std::vector<StepKernel> kernels{
      {KernelKind::step_scores_cold, KernelKind::step_scores_warm,
       [](const AttentionArguments& args, float* scores) { attention_scores(args, scores); }},
      {KernelKind::step_context_cold, KernelKind::step_context_warm,
       [](const AttentionArguments& args, float* weights) { attention_context(args, weights); }},
      {KernelKind::step_fused_cold, KernelKind::step_fused_warm,
       [](const AttentionArguments& args, float* scratch) { fused_attention(args, scratch); }}};
  return kernels;
}

/// Times of one point.
class StepProbe {
 public:
  StepProbe(const StepKernel& kernel, const KernelSizes& s)
      : kernel_(kernel),
        sizes_{whole(s[0]), whole(s[1]), whole(s[3])},
        keys_(whole(s[2])),
        bytes_(8 * sizes_.kv_heads * keys_ * sizes_.head_dim) {}

  /// From a cache; none where it would hold them not.
  [[nodiscard]] std::optional<KernelTime> warm(const Budget& budget) const {
    return bytes_ > kWarmBytes ? std::nullopt : std::optional(time(budget, bytes_, {}));
  }

  /// From memory, after `warm`; none where it would take too long.
  [[nodiscard]] std::optional<KernelTime> cold(Budget budget,
                                               const std::optional<KernelTime>& warm) const {
    if (bytes_ > kMostBytes) return std::nullopt;
    budget.pace = Pace::memory;
    if (warm) budget.cached_s = warm->seconds;
    budget.fewest_samples = kColdSamples;
    // Twice as much as no cache holds, since scores read the keys only.
    return time(budget, 2 * uncached_bytes(), read_others);
  }

 private:
  [[nodiscard]] KernelTime time(const Budget& budget, std::int64_t bytes,
                                const NumberedCall& before) const {
    StepOperands operands(sizes_, keys_, bytes);
    const AttentionArguments& args = operands.args();
    AlignedVector<float> scratch =
        filled(args.heads * keys_ + fused_attention_scratch_floats(args, omp_get_max_threads()));
    return time_call(
        budget, [&](std::int64_t /*i*/) { kernel_.run(operands.next(), scratch.data()); }, before);
  }

  const StepKernel& kernel_;
  HeadSizes sizes_;
  std::int64_t keys_;
  std::int64_t bytes_;
};

}  // namespace

void probe_step_attention(const Budget& budget, std::vector<KernelTable>& tables) {
  for (const StepKernel& kernel : step_kernels()) {
    const KernelGrid axes = calibration_axes(kernel.cold, budget.effort);
    std::vector<KernelTable> cold;
    std::vector<KernelTable> warm;
    for (Rounds rounds(budget.rounds, kMostSeconds); rounds.go_on(); rounds.done()) {
      cold.push_back(unmeasured_table(kernel.cold, axes));
      warm.push_back(unmeasured_table(kernel.warm, axes));
      for (std::size_t number = 0; number < cold.back().seconds.size(); ++number) {
        const StepProbe probe(kernel, point_of(axes, number));
        const std::optional<KernelTime> cached = probe.warm(budget);
        store(warm.back(), number, cached);
        store(cold.back(), number, probe.cold(budget, cached));
      }
    }
    tables.push_back(median_of(cold));
    tables.push_back(median_of(warm));
  }
}

}  // namespace headroom::measured
