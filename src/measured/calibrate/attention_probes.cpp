// Probes of prefill attention: eager, fused and linear.
#include <omp.h>

#include <algorithm>

#include "attention_operands.h"
#include "kernels/linear_attention.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

/// Multi-head attention: every head has its own keys and values.
HeadSizes multi_head(double heads, double head_dim) {
  return {to_integer(heads), 1, to_integer(head_dim)};
}

PromptOperands prompt_operands(const KernelSizes& s) {
  return {multi_head(s[0], s[3]), to_integer(s[1]), to_integer(s[2])};
}

/// Measures the points of prompts with `time`. With few heads, as in most models, all lengths; with
/// many, whose time per pair is about the same, only those that are not too long.
template <class Make>
KernelTable sweep_prompts(const Budget& budget, KernelKind kind, const Make& time) {
  constexpr double kFewHeads = 16;
  return sweep(budget, kind, [&](const KernelSizes& sizes) {
    const double max_work = sizes[0] < kFewHeads ? 0.6 * kMaxWork : 0.25 * kMaxWork;
    if (work_of(kind, sizes) > max_work) return std::optional<KernelTime>();
    return std::optional(time(sizes));
  });
}

/// Takes two samples of a point, and more only while they scatter (sweep.cpp): most of a sample's
/// time is its preparation. 412 points measured four times each way, in turn, lay within 2.5 % of
/// the median of all with two samples and with three, nine of ten within 12 and 13 %.
Budget with_few_samples(Budget budget) {
  budget.min_samples = std::min(budget.min_samples, 2);
  return budget;
}

/// Reads as much memory as a layer's weights between two attentions, which evicts the previous
/// layer's operands. The amount was found by trial on a machine with 85 MiB of a shared last-level
/// cache: after reading 32 MiB scores were 11 % too fast, after 64 MiB 1 %.
void read_layer_weights(std::int64_t i) {
  constexpr std::int64_t kLayer = std::int64_t{64} << 18;  // floats
  const std::int64_t layers = uncached_bytes() / 4 / kLayer;
  const float* const weights = shared_floats(layers * kLayer);
  read_through(weights + i % layers * kLayer, kLayer);
}

/// Simulates the projection before attention: a matrix product, which leaves the processor at its
/// low clock, and freshly written operands.
void simulate_projection(const Budget& budget, PromptOperands& operands) {
  if (budget.gauge != nullptr) budget.gauge->lower_clock();
  operands.rewrite();
}

/// Scores overwrite the scores of the previous layer.
KernelTable probe_scores(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_scores, [&](const auto& s) {
    PromptOperands operands = prompt_operands(s);
    AlignedVector<float> scores = random_floats(to_integer(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_scores(operands.args(), scores.data()); },
        [&](std::int64_t i) {
          read_layer_weights(i);
          simulate_projection(budget, operands);
        });
  });
}

KernelTable probe_context(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_context, [&](const auto& s) {
    PromptOperands operands = prompt_operands(s);
    const AttentionArguments& args = operands.args();
    AlignedVector<float> scores = random_floats(to_integer(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_context(args, scores.data()); },
        [&](std::int64_t /*i*/) {
          simulate_projection(budget, operands);
          attention_scores(args, scores.data());
          attention_softmax(args, scores.data());
        });
  });
}

KernelTable probe_softmax(const Budget& budget) {
  constexpr double kHeadDim = 64;  // of the scores before it
  return sweep_up_to(budget, KernelKind::attention_softmax, kMaxWork / 100, [&](const auto& s) {
    PromptOperands operands(multi_head(s[0], kHeadDim), to_integer(s[1]), to_integer(s[2]));
    const AttentionArguments& args = operands.args();
    AlignedVector<float> scores = random_floats(to_integer(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_softmax(args, scores.data()); },
        [&](std::int64_t /*i*/) {
          simulate_projection(budget, operands);
          attention_scores(args, scores.data());
        });
  });
}

KernelTable probe_fused(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_fused, [&](const auto& s) {
    PromptOperands operands = prompt_operands(s);
    const AttentionArguments& args = operands.args();
    AlignedVector<float> scratch =
        random_floats(fused_attention_scratch_floats(args, omp_get_max_threads()));
    return time_call(
        budget, [&](std::int64_t /*i*/) { fused_attention(args, scratch.data()); },
        [&](std::int64_t /*i*/) { simulate_projection(budget, operands); });
  });
}

KernelTable probe_linear_attention(const Budget& budget, KernelKind kind) {
  return sweep_prompts(budget, kind, [&](const auto& s) {
    PromptOperands operands(multi_head(s[0], s[2]), to_integer(s[1]), to_integer(s[1]));
    AttentionArguments& args = operands.args();
    args.causal = kind == KernelKind::linear_attention_causal;
    AlignedVector<float> state(static_cast<std::size_t>(linear_attention_state_floats(args)));
    return time_call(
        budget,
        [&](std::int64_t /*i*/) {
          std::ranges::fill(state, 0.0F);
          linear_attention(args, 1e-6F, state.data());
        },
        [&](std::int64_t /*i*/) { simulate_projection(budget, operands); });
  });
}

}  // namespace

void probe_attention(const Budget& each_round, std::vector<KernelTable>& tables) {
  // Takes all samples of a point in a row, so that the caches settle as they do from layer to
  // layer.
  const Budget budget = in_one_round(each_round);
  const Budget prompts = with_few_samples(budget);
  tables.push_back(probe_scores(prompts));
  tables.push_back(probe_context(prompts));
  tables.push_back(probe_softmax(prompts));
  tables.push_back(probe_fused(prompts));
  for (const KernelKind kind :
       {KernelKind::linear_attention, KernelKind::linear_attention_causal}) {
    tables.push_back(probe_linear_attention(budget, kind));
  }
}

}  // namespace headroom::measured
