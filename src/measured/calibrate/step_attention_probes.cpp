// Probes of decode attention: one query with a KV-cache, cold (from memory, where much of the time
// scales with memory's speed) and warm (from a cache).
#include <omp.h>

#include <functional>

#include "attention_operands.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

/// Maximum bytes of keys and values that stay in a last-level cache, even a shared one.
constexpr std::int64_t kMaxWarmBytes = std::int64_t{4} << 20;

/// Maximum bytes to measure; beyond, time is proportional to bytes.
constexpr std::int64_t kMaxColdBytes = std::int64_t{64} << 20;

/// Samples of a cold point; few, since a long read precedes each.
constexpr int kColdSamples = 3;

/// Time limit of a kernel's rounds.
constexpr double kMaxStepSeconds = 2.5;

/// One of the three kernels, with its scratch memory.
using StepKernelFunction = std::function<void(const AttentionArguments&, float* scratch)>;

struct StepKernel {
  KernelKind cold;
  KernelKind warm;
  StepKernelFunction run;
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

/// Measures one point.
class StepProbe {
 public:
  StepProbe(const StepKernel& kernel, const KernelSizes& s)
      : kernel_(kernel),
        sizes_{to_integer(s[0]), to_integer(s[1]), to_integer(s[3])},
        keys_(to_integer(s[2])),
        bytes_(8 * sizes_.kv_heads * keys_ * sizes_.head_dim) {}

  /// Time from a cache; empty if the operands do not fit.
  [[nodiscard]] std::optional<KernelTime> warm(const Budget& budget) const {
    return bytes_ > kMaxWarmBytes ? std::nullopt : std::optional(time(budget, bytes_, {}));
  }

  /// Time from memory, measured after `warm`; empty if it would take too long.
  [[nodiscard]] std::optional<KernelTime> cold(Budget budget,
                                               const std::optional<KernelTime>& warm) const {
    if (bytes_ > kMaxColdBytes) return std::nullopt;
    budget.resource = Resource::memory;
    if (warm) budget.cached_s = warm->seconds;
    budget.min_samples = kColdSamples;
    // Twice the uncached working set, since scores read only the keys.
    return time(budget, 2 * uncached_bytes(), read_unrelated_memory);
  }

 private:
  [[nodiscard]] KernelTime time(const Budget& budget, std::int64_t bytes,
                                const NumberedCall& before) const {
    StepOperands operands(sizes_, keys_, bytes);
    const AttentionArguments& args = operands.args();
    AlignedVector<float> scratch = random_floats(
        args.heads * keys_ + fused_attention_scratch_floats(args, omp_get_max_threads()));
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
    for (Rounds rounds(budget.rounds, kMaxStepSeconds); rounds.allows_another();
         rounds.finish_round()) {
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
