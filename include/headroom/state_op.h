// Operators that mix positions by a state of constant size: recurrences, short convolutions, state
// spaces and delta rules. Parts of Op (op.h).
#pragma once

#include "headroom/expr.h"
#include "headroom/model_spec.h"

namespace headroom {

/// A recurrent layer after its input GEMMs, position by position: h_t from h_{t-1} and
/// x_t = W_ih·input + b_ih, with W_hh·h_{t-1} + b_hh for every gate. Inputs:
/// `[batch, seq, gates·width]`, and the state `[batch, states·width]` if cached. ->
/// `[batch, seq, width]`
struct Recurrence {
  RecurrentCell cell = RecurrentCell::rnn;
  Expr batch;
  Expr seq_len;  ///< sequential steps
  Expr width;
  bool bias = false;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state

  [[nodiscard]] Expr gates() const { return Integer{gates_of(cell)}; }
  [[nodiscard]] Expr state_elements() const { return batch * Integer{states_of(cell)} * width; }
  [[nodiscard]] Expr output_elements() const { return batch * seq_len * width; }
};

/// Causal depthwise convolution over time, then an activation, in place. `[rows, channels]`, and
/// the last `kernel` inputs `[batch, kernel, channels]` if cached. The next position needs one
/// less; the reference code keeps all of them.
struct ShortConvolution {
  Expr batch;
  Expr rows;
  Expr channels;
  Expr kernel;
  ActivationKind activation = ActivationKind::silu;
  bool bias = false;
  KeySource past = KeySource::projections;  ///< cache: continues from the cached inputs

  [[nodiscard]] Expr elements() const { return rows * channels; }
  [[nodiscard]] Expr state_elements() const { return batch * kernel * channels; }
};

/// Scan of a state-space layer (StateSpaceSpec) by its recurrence. Inputs of a dual layer: rows
/// `[x | B | C]` and `[Δ]`; of a lightning one: rows `[x | B | C]`; of a selective one: rows `[x]`,
/// `[Δ]`, and the rows that have B and C from element `first_parameter`. Then the state `[batch,
/// heads, head_dim, state_size]`, if cached. -> `[rows, heads·head_dim]`
struct StateSpaceScan {
  StateSpaceKind kind = StateSpaceKind::dual;
  Expr batch;
  Expr rows;
  Expr heads;
  Expr head_dim;
  Expr groups;
  Expr state_size;
  Expr first_parameter;
  double least_time_step = 0;
  double greatest_time_step = 0;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state

  [[nodiscard]] Expr output_elements() const { return rows * heads * head_dim; }
  /// Elements of the states of all tokens.
  [[nodiscard]] Expr scanned_elements() const { return output_elements() * state_size; }
  [[nodiscard]] Expr state_elements() const { return batch * heads * head_dim * state_size; }
};

/// Change of a state by a token: `delta` corrects what the state has at its key; `addition` adds
/// k·vᵀ (RWKV-5); `two_vectors` adds k·vᵀ and removes along a vector of its own (RWKV-7).
enum class StateUpdate { delta, addition, two_vectors };

/// Gated delta rule (arXiv 2412.06464, eq. 10): a state `[heads, key_dim, value_dim]` decays, is
/// corrected by each token's key and value, and is read by its query. Queries and keys are divided
/// by their length. Inputs: rows `[Q | K | V]` and `[β | α]`, the strength of the correction before
/// its sigmoid and the time step of the decay before its softplus; a decay of each key dimension
/// has β and α `[rows, heads·key_dim]` apart. Other updates have receptances, keys and values
/// apart, `two_vectors` then decays and rates `[rows, heads·key_dim]`. Then the state, if cached.
/// ->
/// `[rows, heads·value_dim]`
struct GatedDelta {
  Expr batch;
  Expr rows;
  Expr key_heads;  ///< of queries and keys; consecutive value heads share one
  Expr heads;      ///< value heads
  Expr key_dim;
  Expr value_dim;
  KeySource state = KeySource::projections;
  DeltaDecay decay = DeltaDecay::each_head;
  double strength = 1;  ///< multiplies β after its sigmoid
  StateUpdate update = StateUpdate::delta;
  double decay_bound = 0;  ///< as in GatedDeltaSpec

  /// Decay rates of one token.
  [[nodiscard]] Expr decays() const {
    return decay == DeltaDecay::each_head ? heads : heads * key_dim;
  }
};

/// Real-gated linear recurrent unit (RG-LRU; arXiv 2402.19427, eq. 1 to 4) with the recurrence gate
/// r and the input gate i: h_t = a_t·h_{t-1} + √(1 - a_t²)·i_t·x_t and a_t =
/// exp(-8·softplus(Λ)·r_t). Both gates are sigmoids of block-diagonal projections, one block per
/// head. The first position has a = 0. Inputs: `[rows, heads·head_dim]`, and the state `[batch,
/// heads·head_dim]` if cached.
/// -> `[rows, heads·head_dim]`
struct GatedLinearRecurrence {
  Expr batch;
  Expr rows;
  Expr heads;
  Expr head_dim;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state

  [[nodiscard]] Expr elements() const { return rows * heads * head_dim; }
  [[nodiscard]] Expr state_elements() const { return batch * heads * head_dim; }
};

/// Row of the position before, `[rows, width]` -> `[rows, width]`; before the first, the cached
/// last row `[batch, width]` or zeros.
struct TokenShift {
  Expr batch;
  Expr rows;
  Expr width;
  KeySource past = KeySource::projections;  ///< cache: continues from the cached row

  [[nodiscard]] Expr elements() const { return rows * width; }
  [[nodiscard]] Expr state_elements() const { return batch * width; }
};

/// μ of a mix: one trained weight per channel, or the sigmoid of an input of the rows' shape.
enum class MixWeight { trained, gate };

/// μ·x + (1 - μ)·y (arXiv 2305.13048, eq. 11; of values, arXiv 2503.14456, section 4.1). Inputs x
/// and y, and of a gate μ before its sigmoid, `[rows, width]` each. -> `[rows, width]`
struct TokenMix {
  Expr rows;
  Expr width;
  MixWeight weight = MixWeight::trained;
};

/// Adds each token's own value once more to its output, in place: (Σ r·k̃·u)·v of every head, with
/// the trained bonus u and the key k̃ of the delta rule with two vectors (arXiv 2503.14456, section
/// 4.1). Inputs: outputs `[rows, heads·value_dim]`, receptances and keys `[rows, heads·key_dim]`,
/// values `[rows, heads·value_dim]` and rates `[rows, heads·key_dim]`.
struct ValueBonus {
  Expr rows;
  Expr heads;
  Expr key_dim;
  Expr value_dim;

  [[nodiscard]] Expr key_elements() const { return rows * heads * key_dim; }
  [[nodiscard]] Expr value_elements() const { return rows * heads * value_dim; }
};

/// Weighted sum of values over all positions with weights exp(k) that decay by exp(-exp(w)) per
/// position and channel; the position itself has exp(u + k) (WKV; arXiv 2305.13048, eq. 16).
/// Inputs: keys and values, `[rows, width]` each, and the state `[batch, 3, width]` if cached:
/// numerator, denominator and largest exponent. -> `[rows, width]`
struct WeightedKeyValue {
  Expr batch;
  Expr rows;
  Expr width;
  KeySource state = KeySource::projections;  ///< cache: continues from the cached state

  [[nodiscard]] Expr elements() const { return rows * width; }
  [[nodiscard]] Expr state_elements() const { return Integer{3} * batch * width; }
};

}  // namespace headroom
