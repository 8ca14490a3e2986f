// Attention of prompts, step by step and fused, and linear attention.
#include <omp.h>

#include <algorithm>

#include "attention_operands.h"
#include "kernels/elementwise.h"
#include "kernels/linear_attention.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

Operands prompt(const KernelSizes& s) {
  return Operands::of_prompt(whole(s[0]), whole(s[1]), whole(s[2]), whole(s[3]));
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

/// Scores of a layer are written over what the layer before left, which weights have driven out of
/// every cache by then.
KernelTable probe_scores(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_scores, [&](const auto& s) {
    Operands operands = prompt(s);
    AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_scores(operands.next(), scores.data()); },
        [&](std::int64_t /*i*/) { drive_out(scores); });
  });
}

KernelTable probe_context(const Budget& budget) {
  return sweep_prompts(budget, KernelKind::attention_context, [&](const auto& s) {
    Operands operands = prompt(s);
    AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    const auto count = static_cast<std::int64_t>(scores.size());
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_context(operands.next(), scores.data()); },
        // Softmax has written them: each thread the rows that it goes on with.
        [&](std::int64_t /*i*/) { scale(scores.data(), -1.0F, count); });
  });
}

/// Writes scores as the product before a softmax does: each thread the rows that it goes on with,
/// over what the layer before left.
void write_scores(const AlignedVector<float>& from, std::int64_t keys, AlignedVector<float>& to) {
  drive_out(to);
  const std::int64_t rows = static_cast<std::int64_t>(to.size()) / keys;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(from.data() + row * keys, keys, to.data() + row * keys);
  }
}

KernelTable probe_softmax(const Budget& budget, KernelKind kind) {
  return sweep_up_to(budget, kind, kMostWork / 100, [&](const auto& s) {
    Operands operands = Operands::of_prompt(whole(s[0]), whole(s[1]), whole(s[2]), 1);
    const std::int64_t count = whole(s[0] * s[1] * s[2]);
    const AlignedVector<float> written = filled(count);
    AlignedVector<float> scores = written;
    AlignedVector<float> bias;
    if (kind == KernelKind::attention_softmax_biased) {
      bias = filled(count);
      operands.args().bias = bias.data();
    }
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_softmax(operands.args(), scores.data()); },
        [&](std::int64_t /*i*/) {
          drive_out(bias);  // weights have, since the last layer read it
          write_scores(written, whole(s[2]), scores);
        });
  });
}

KernelTable probe_fused(const Budget& budget, KernelKind kind) {
  return sweep_prompts(budget, kind, [&](const auto& s) {
    Operands operands = prompt(s);
    AttentionArguments& args = operands.args();
    if (kind == KernelKind::attention_fused_causal) {
      args.causal = true;
      args.past = std::max<std::int64_t>(0, args.keys - args.queries);
    }
    AlignedVector<float> scratch =
        filled(fused_attention_scratch_floats(args, omp_get_max_threads()));
    return time_call(budget,
                     [&](std::int64_t /*i*/) { fused_attention(operands.next(), scratch.data()); });
  });
}

KernelTable probe_linear_attention(const Budget& budget, KernelKind kind) {
  return sweep_prompts(budget, kind, [&](const auto& s) {
    Operands operands = Operands::of_prompt(whole(s[0]), whole(s[1]), whole(s[1]), whole(s[2]));
    AttentionArguments& args = operands.args();
    args.causal = kind == KernelKind::linear_attention_causal;
    AlignedVector<float> state(static_cast<std::size_t>(linear_attention_state_floats(args)));
    return time_call(budget, [&](std::int64_t /*i*/) {
      std::ranges::fill(state, 0.0F);
      linear_attention(operands.next(), 1e-6F, state.data());
    });
  });
}

}  // namespace

void probe_attention(const Budget& budget, std::vector<KernelTable>& tables) {
  tables.push_back(probe_scores(budget));
  tables.push_back(probe_context(budget));
  for (const KernelKind kind :
       {KernelKind::attention_softmax, KernelKind::attention_softmax_biased}) {
    tables.push_back(probe_softmax(budget, kind));
  }
  for (const KernelKind kind : {KernelKind::attention_fused, KernelKind::attention_fused_causal}) {
    tables.push_back(probe_fused(budget, kind));
  }
  for (const KernelKind kind :
       {KernelKind::linear_attention, KernelKind::linear_attention_causal}) {
    tables.push_back(probe_linear_attention(budget, kind));
  }
}

}  // namespace headroom::measured
