// Attention kernels on operands that lie as the executor's do: heads side by side in a token's row,
// queries, keys and values in one.
#include <omp.h>

#include <algorithm>
#include <memory>

#include "kernels/attention.h"
#include "kernels/linear_attention.h"
#include "probes.h"

namespace headroom::measured {
namespace {

std::int64_t whole(double size) { return static_cast<std::int64_t>(size); }

/// Bytes of operands that are gone round, so that they come from where a layer's do: a prompt's
/// from the last cache, since weights have gone through the nearer ones meanwhile; those of a step
/// that goes on from a KV-cache from memory.
constexpr std::int64_t kNearBytes = std::int64_t{8} << 20;

/// Operands of one attention, several times over, in memory that all share: one at a time.
class Operands {
 public:
  Operands(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t head_dim) {
    const bool cached = queries == 1;
    const std::int64_t width = heads * head_dim;
    const std::int64_t key_row = (cached ? 2 : 3) * width;
    const std::int64_t floats = (queries + keys) * 3 * width;
    const std::int64_t bytes = cached ? uncached_bytes() : kNearBytes;
    const std::int64_t copies = std::clamp<std::int64_t>(bytes / 4 / floats, 1, 512);
    args_.heads = args_.kv_heads = heads;
    args_.head_dim = args_.value_head_dim = head_dim;
    args_.queries = queries;
    args_.keys = keys;
    args_.q_stride = 3 * width;
    args_.k_stride = args_.v_stride = key_row;
    args_.out_stride = width;
    args_.k_head_stride = args_.v_head_stride = head_dim;
    args_.q_batch_stride = queries * args_.q_stride;
    args_.k_batch_stride = args_.v_batch_stride = keys * key_row;
    args_.out_batch_stride = queries * width;
    args_.scale = 0.1F;
    values_begin_ = key_row - width;
    keys_begin_ = values_begin_ - width;
    const auto lines = [](std::int64_t count) { return (count + kLine - 1) / kLine * kLine; };
    const std::int64_t q_floats = lines(queries * 3 * width);
    const std::int64_t floats_each = q_floats + lines(keys * key_row);
    const float* const numbers = shared_numbers(copies * floats_each);
    for (std::int64_t i = 0; i < copies; ++i) {
      const float* const copy = numbers + i * floats_each;
      copies_.push_back({copy, copy + q_floats});
    }
    out_ = filled(queries * width);
    args_.out = out_.data();
    (void)next();
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  [[nodiscard]] AttentionArguments& args() { return args_; }

  /// The next copy's.
  [[nodiscard]] const AttentionArguments& next() {
    const Copy& copy = copies_[at_++ % copies_.size()];
    args_.q = copy.q;
    args_.k = copy.kv + keys_begin_;
    args_.v = copy.kv + values_begin_;
    return args_;
  }

 private:
  static constexpr std::int64_t kLine = 16;  // floats of a cache line

  struct Copy {
    const float* q = nullptr;
    const float* kv = nullptr;
  };

  AttentionArguments args_;
  std::vector<Copy> copies_;
  std::size_t at_ = 0;
  std::int64_t keys_begin_ = 0;
  std::int64_t values_begin_ = 0;
  AlignedVector<float> out_;
};

bool too_long(const KernelSizes& sizes, double most) {
  return work_of(KernelKind::attention_scores, sizes) > most;
}

/// One query reads a KV-cache, and goes up and down with the memory.
Budget paced(Budget budget, const KernelSizes& sizes) {
  if (sizes[1] == 1) budget.pace = Pace::memory;
  return budget;
}

/// The three steps one after the other, as a layer runs them, each timed apart.
void probe_eager(const Budget& budget, std::vector<KernelTable>& tables) {
  tables.push_back(sweep(budget, KernelKind::attention_scores, [&](const KernelSizes& s) {
    if (too_long(s, kMostWork / 3)) return std::optional<KernelTime>();
    Operands operands(whole(s[0]), whole(s[1]), whole(s[2]), whole(s[3]));
    AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    return std::optional(time_call(paced(budget, s), [&](std::int64_t /*i*/) {
      attention_scores(operands.next(), scores.data());
    }));
  }));
  tables.push_back(sweep(budget, KernelKind::attention_context, [&](const KernelSizes& s) {
    if (too_long(s, kMostWork / 3)) return std::optional<KernelTime>();
    Operands operands(whole(s[0]), whole(s[1]), whole(s[2]), whole(s[3]));
    const AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
    return std::optional(time_call(paced(budget, s), [&](std::int64_t /*i*/) {
      attention_context(operands.next(), scores.data());
    }));
  }));
  for (const KernelKind kind :
       {KernelKind::attention_softmax, KernelKind::attention_softmax_biased}) {
    tables.push_back(sweep(budget, kind, [&](const KernelSizes& s) {
      if (s[0] * s[1] * s[2] > kMostWork / 60) return std::optional<KernelTime>();
      Operands operands(whole(s[0]), whole(s[1]), whole(s[2]), 1);
      AlignedVector<float> scores = filled(whole(s[0] * s[1] * s[2]));
      AlignedVector<float> bias;
      if (kind == KernelKind::attention_softmax_biased) {
        bias = filled(whole(s[0] * s[1] * s[2]));
        operands.args().bias = bias.data();
      }
      return std::optional(time_call(paced(budget, s), [&](std::int64_t /*i*/) {
        attention_softmax(operands.args(), scores.data());
      }));
    }));
  }
}

void probe_fused(const Budget& budget, std::vector<KernelTable>& tables) {
  for (const KernelKind kind : {KernelKind::attention_fused, KernelKind::attention_fused_causal}) {
    tables.push_back(sweep(budget, kind, [&](const KernelSizes& s) {
      if (too_long(s, kMostWork * 0.6)) return std::optional<KernelTime>();
      Operands operands(whole(s[0]), whole(s[1]), whole(s[2]), whole(s[3]));
      AttentionArguments& args = operands.args();
      if (kind == KernelKind::attention_fused_causal) {
        args.causal = true;
        args.past = std::max<std::int64_t>(0, args.keys - args.queries);
      }
      AlignedVector<float> scratch =
          filled(fused_attention_scratch_floats(args, omp_get_max_threads()));
      return std::optional(time_call(paced(budget, s), [&](std::int64_t /*i*/) {
        fused_attention(operands.next(), scratch.data());
      }));
    }));
  }
}

void probe_linear_attention(const Budget& budget, std::vector<KernelTable>& tables) {
  for (const KernelKind kind :
       {KernelKind::linear_attention, KernelKind::linear_attention_causal}) {
    tables.push_back(sweep(budget, kind, [&](const KernelSizes& s) {
      if (work_of(kind, s) > kMostWork / 3) return std::optional<KernelTime>();
      Operands operands(whole(s[0]), whole(s[1]), whole(s[1]), whole(s[2]));
      AttentionArguments& args = operands.args();
      args.causal = kind == KernelKind::linear_attention_causal;
      AlignedVector<float> state(static_cast<std::size_t>(linear_attention_state_floats(args)));
      return std::optional(time_call(paced(budget, s), [&](std::int64_t /*i*/) {
        std::ranges::fill(state, 0.0F);
        linear_attention(operands.next(), 1e-6F, state.data());
      }));
    }));
  }
}

}  // namespace

void probe_attention(const Budget& budget, std::vector<KernelTable>& tables) {
  probe_eager(budget, tables);
  probe_fused(budget, tables);
  probe_linear_attention(budget, tables);
}

}  // namespace headroom::measured
