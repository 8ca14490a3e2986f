#include "state_calls.h"

#include <algorithm>
#include <cmath>

#include "activation_calls.h"

namespace headroom::detail {
namespace {

double number(const Expr& expr, const Bindings& sizes) {
  return static_cast<double>(expr.evaluate(sizes));
}

KernelCall elements(KernelKind kind, double count, double times = 1) {
  return {kind, {count}, {}, times};
}

/// States of some elements that every token updates and reads.
struct TokenStates {
  Expr batch;
  Expr heads;
  Expr rows;
  Expr elements;  ///< of a head
};

/// As causal linear attention with square states of as many elements.
KernelCall state_call(const TokenStates& states, const Bindings& sizes) {
  const double side = std::max(1.0, std::sqrt(number(states.elements, sizes)));
  return {KernelKind::linear_attention_causal,
          {number(states.batch * states.heads, sizes),
           number(states.rows, sizes) / number(states.batch, sizes), side},
          {}};
}

}  // namespace

std::vector<KernelCall> state_calls(const ShortConvolution& op, const Bindings& sizes) {
  // Each tap reads an input of the window and a weight, and moves the input on.
  const double count = number(op.elements(), sizes);
  return {elements(KernelKind::residual_add, count, number(op.kernel, sizes)),
          elements(kernels_of(op.activation).plain, count)};
}

std::vector<KernelCall> state_calls(const StateSpaceScan& op, const Bindings& sizes) {
  if (op.kind != StateSpaceKind::selective) {
    KernelCall scan = state_call({op.batch, op.heads, op.rows, op.head_dim * op.state_size}, sizes);
    // Each token reads and writes the states, where linear attention does so once per block.
    if (number(op.rows, sizes) > number(op.batch, sizes)) scan.times = 2;
    return {scan};
  }
  // An exponential for the decay of each state, and two for the time step of each channel.
  constexpr double kStepExponentials = 2;
  const double states = number(op.heads * op.head_dim * op.state_size, sizes);
  return {elements(KernelKind::silu, states, number(op.rows, sizes)),
          elements(KernelKind::silu, number(op.rows * op.heads, sizes), kStepExponentials)};
}

std::vector<KernelCall> state_calls(const GatedDelta& op, const Bindings& sizes) {
  KernelCall state = state_call({op.batch, op.heads, op.rows, op.key_dim * op.value_dim}, sizes);
  if (op.update == StateUpdate::addition) return {state};
  state.times = 2;  // read once more, for what the update removes
  // Exponentials of sigmoids or of softpluses.
  constexpr double kDecayExponentials = 2;
  return {state,
          elements(KernelKind::silu, number(op.rows * op.decays(), sizes), kDecayExponentials)};
}

std::vector<KernelCall> state_calls(const TokenShift& op, const Bindings& sizes) {
  return {elements(KernelKind::copy, number(op.elements(), sizes))};
}

std::vector<KernelCall> state_calls(const TokenMix& op, const Bindings& sizes) {
  const bool is_gated = op.weight == MixWeight::gate;
  return {elements(is_gated ? KernelKind::silu_gated : KernelKind::residual_add,
                   number(op.rows * op.width, sizes))};
}

std::vector<KernelCall> state_calls(const ValueBonus& op, const Bindings& sizes) {
  return {elements(KernelKind::silu, number(op.key_elements(), sizes)),
          elements(KernelKind::residual_add, number(op.value_elements(), sizes))};
}

std::vector<KernelCall> state_calls(const WeightedKeyValue& op, const Bindings& sizes) {
  constexpr double kExponentials = 4;  // of the state, and of what the position sees
  return {elements(KernelKind::silu, number(op.elements(), sizes), kExponentials)};
}

}  // namespace headroom::detail
