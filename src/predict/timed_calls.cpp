#include "timed_calls.h"

#include <algorithm>
#include <utility>

#include "timed_kernels.h"

namespace headroom::detail {
namespace {

/// Unmasked attention, as often as the mask leaves pairs.
KernelCall unmasked(KernelCall call) {
  const double seen = work_of(call.kind, call.sizes);
  call.kind = KernelKind::attention_fused;
  call.sizes.erase(call.sizes.begin() + 1);  // query heads per key-value head
  call.times *= seen / work_of(call.kind, call.sizes);
  return call;
}

KernelKind timed_kind(KernelKind kind) {
  const bool is_softmax =
      kind == KernelKind::attention_softmax_causal || kind == KernelKind::attention_softmax_biased;
  return is_softmax ? KernelKind::attention_softmax : KernelKind::residual_add;
}

KernelCall timed_call(KernelCall call) {
  if (is_timed(call.kind)) return call;
  if (call.kind == KernelKind::attention_fused_causal) return unmasked(std::move(call));
  call.kind = timed_kind(call.kind);
  return call;
}

}  // namespace

std::vector<KernelCall> timed_calls(std::vector<KernelCall> calls, MeasuredEngine engine) {
  switch (engine) {
    case MeasuredEngine::pytorch:
      return calls;
    case MeasuredEngine::headroom:
      break;
  }
  std::ranges::transform(calls, calls.begin(), timed_call);
  return calls;
}

}  // namespace headroom::detail
