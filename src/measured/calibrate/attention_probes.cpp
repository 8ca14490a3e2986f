// Attention of prompts, step by step and fused, and linear attention.
#include <omp.h>

#include <algorithm>
#include <utility>

#include "attention_operands.h"
#include "kernels/bandwidth.h"
#include "kernels/linear_attention.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

/// Each head has its own keys and values.
HeadSizes heads_of(double heads, double head_dim) { return {whole(heads), 1, whole(head_dim)}; }

PromptOperands prompt(const KernelSizes& s) {
  return {heads_of(s[0], s[3]), whole(s[1]), whole(s[2])};
}

/// The last query sees all keys.
void mask(AttentionArguments& args) {
  args.causal = true;
  args.past = std::max<std::int64_t>(0, args.keys - args.queries);
}

/// Measures with `time` the points of prompts. Of few heads all lengths, as most models have them;
/// of many, whose pairs take about as long, those that are not too long.
template <class Make>
KernelTable sweep_prompts(const Budget& budget, KernelKind kind, const Make& time) {
  constexpr double kFewHeads = 16;
  return sweep(budget, kind, [&](const KernelSizes& sizes) {
    const double most = sizes[0] < kFewHeads ? 0.6 * kMostWork : 0.25 * kMostWork;
    if (work_of(kind, sizes) > most) return std::optional<KernelTime>();
    return std::optional(time(sizes));
  });
}

/// Reads others' memory as a layer's weights are read between two attentions: what the layer before
/// left in the caches is gone then. How much that takes was found by trial, on one machine with 85
/// MiB of a shared last cache: behind 32 MiB scores came out 11 % too fast, behind 64 MiB 1 %.
void read_layer(std::int64_t i) {
  constexpr std::int64_t kLayer = std::int64_t{64} << 18;  // floats
  const std::int64_t layers = uncached_bytes() / 4 / kLayer;
  const float* const weights = shared_numbers(layers * kLayer);
  [[maybe_unused]] volatile float kept = 0;  // so that the compiler has to read
  kept = read_all(weights + i % layers * kLayer, kLayer);
}

/// What comes before an attention: a product, which leaves the processor at its clock, and operands
/// that were just written.
void project(const Budget& budget, PromptOperands& operands) {
  if (budget.gauge != nullptr) budget.gauge->lower_clock();
  operands.renew();
}

/// Scores are written over what the layer before left.
KernelTable probe_scores(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_scores, [&](const auto& s) {
    PromptOperands operands = prompt(s);
    AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_scores(operands.args(), scores.data()); },
        [&](std::int64_t i) {
          read_layer(i);
          project(budget, operands);
        });
  });
}

KernelTable probe_context(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_context, [&](const auto& s) {
    PromptOperands operands = prompt(s);
    const AttentionArguments& args = operands.args();
    AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_context(args, scores.data()); },
        [&](std::int64_t /*i*/) {
          project(budget, operands);
          attention_scores(args, scores.data());
          attention_softmax(args, scores.data());
        });
  });
}

KernelTable probe_softmax(const Budget& budget, KernelKind kind) {
  constexpr double kHeadDim = 64;  // of the product before it
  return sweep_up_to(budget, kind, kMostWork / 100, [&](const auto& s) {
    PromptOperands operands(heads_of(s[0], kHeadDim), whole(s[1]), whole(s[2]));
    AttentionArguments& args = operands.args();
    if (kind == KernelKind::attention_softmax_causal) mask(args);
    AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    AlignedVector<float> bias;
    if (kind == KernelKind::attention_softmax_biased) {
      bias = filled(whole(s[0] * s[1] * s[2]));
      args.bias = bias.data();
    }
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_softmax(args, scores.data()); },
        [&](std::int64_t /*i*/) {
          drive_out(bias);  // weights have, since the last layer read it
          project(budget, operands);
          attention_scores(args, scores.data());
        });
  });
}

KernelTime time_fused(const Budget& budget, PromptOperands operands) {
  const AttentionArguments& args = operands.args();
  AlignedVector<float> scratch =
      filled(fused_attention_scratch_floats(args, omp_get_max_threads()));
  return time_call(
      budget, [&](std::int64_t /*i*/) { fused_attention(args, scratch.data()); },
      [&](std::int64_t /*i*/) { project(budget, operands); });
}

KernelTable probe_fused(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_fused,
                       [&](const auto& s) { return time_fused(budget, prompt(s)); });
}

KernelTable probe_fused_causal(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_fused_causal, [&](const auto& s) {
    PromptOperands operands({whole(s[0] / s[1]), whole(s[1]), whole(s[4])}, whole(s[2]),
                            whole(s[3]));
    mask(operands.args());
    return time_fused(budget, std::move(operands));
  });
}

KernelTable probe_linear_attention(const Budget& budget, KernelKind kind) {
  return sweep_prompts(budget, kind, [&](const auto& s) {
    PromptOperands operands(heads_of(s[0], s[2]), whole(s[1]), whole(s[1]));
    AttentionArguments& args = operands.args();
    args.causal = kind == KernelKind::linear_attention_causal;
    AlignedVector<float> state(static_cast<std::size_t>(linear_attention_state_floats(args)));
    return time_call(
        budget,
        [&](std::int64_t /*i*/) {
          std::ranges::fill(state, 0.0F);
          linear_attention(args, 1e-6F, state.data());
        },
        [&](std::int64_t /*i*/) { project(budget, operands); });
  });
}

}  // namespace

void probe_attention(const Budget& each_round, std::vector<KernelTable>& tables) {
  // Samples one after another, so that the caches settle to what they are from layer to layer.
  const Budget budget = in_one_round(each_round);
  tables.push_back(probe_scores(budget));
  tables.push_back(probe_context(budget));
  for (const KernelKind kind : {KernelKind::attention_softmax, KernelKind::attention_softmax_causal,
                                KernelKind::attention_softmax_biased}) {
    tables.push_back(probe_softmax(budget, kind));
  }
  tables.push_back(probe_fused(budget));
  tables.push_back(probe_fused_causal(budget));
  for (const KernelKind kind :
       {KernelKind::linear_attention, KernelKind::linear_attention_causal}) {
    tables.push_back(probe_linear_attention(budget, kind));
  }
}

}  // namespace headroom::measured
