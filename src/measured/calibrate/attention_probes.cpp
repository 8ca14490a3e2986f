// Attention of prompts, step by step and fused, and linear attention.
#include <omp.h>

#include <algorithm>

#include "attention_operands.h"
#include "kernels/linear_attention.h"
#include "probes.h"

namespace headroom::measured {
namespace {

Operands prompt(const KernelSizes& s) {
  return Operands::of_prompt(whole(s[0]), whole(s[1]), whole(s[2]), whole(s[3]));
}

/// Scores of a layer are written over what the layer before left, which weights have driven out of
/// every cache by then.
KernelTable probe_scores(const Budget& budget) {
  return sweep_up_to(budget, KernelKind::attention_scores, kMostWork / 3, [&](const auto& s) {
    Operands operands = prompt(s);
    const std::int64_t pairs = whole(s[0] * s[1] * s[2]);
    const std::int64_t copies = 1 + uncached_bytes() / 4 / pairs;
    float* const scores = shared_room(copies * pairs);
    return time_call(budget, [&](std::int64_t i) {
      attention_scores(operands.next(), scores + i % copies * pairs);
    });
  });
}

KernelTable probe_context(const Budget& budget) {
  return sweep_up_to(budget, KernelKind::attention_context, kMostWork / 3, [&](const auto& s) {
    Operands operands = prompt(s);
    const AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_context(operands.next(), scores.data()); });
  });
}

/// Writes scores as the product before a softmax does: each thread the rows that it goes on with.
void write_rows(const float* from, std::int64_t rows, std::int64_t keys, float* to) {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * keys, keys, to + row * keys);
  }
}

KernelTable probe_softmax(const Budget& budget, KernelKind kind) {
  return sweep_up_to(budget, kind, kMostWork / 60, [&](const auto& s) {
    Operands operands = Operands::of_prompt(whole(s[0]), whole(s[1]), whole(s[2]), 1);
    const std::int64_t rows = whole(s[0] * s[1]);
    const std::int64_t keys = whole(s[2]);
    const AlignedVector<float> written = filled(rows * keys);
    AlignedVector<float> scores = filled(rows * keys);
    AlignedVector<float> bias;
    if (kind == KernelKind::attention_softmax_biased) {
      bias = filled(rows * keys);
      operands.args().bias = bias.data();
    }
    return time_call(
        budget, [&](std::int64_t /*i*/) { attention_softmax(operands.args(), scores.data()); },
        [&](std::int64_t /*i*/) { write_rows(written.data(), rows, keys, scores.data()); });
  });
}

KernelTable probe_fused(const Budget& budget, KernelKind kind) {
  return sweep_up_to(budget, kind, kMostWork / 3, [&](const auto& s) {
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
  return sweep_up_to(budget, kind, kMostWork / 3, [&](const auto& s) {
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
