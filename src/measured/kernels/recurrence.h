// Recurrent layers, after the matrix products with their inputs: per step, a matrix product of few
// rows, then the cell's gates.
#pragma once

#include <cstdint>

#include "aligned.h"
#include "gemm.h"
#include "headroom/model_spec.h"

namespace headroom::measured {

struct RecurrenceArguments {
  RecurrentCell cell = RecurrentCell::rnn;
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  const float* inputs = nullptr;  ///< [batch, seq_len, gates·width], each gate's W_ih·x + b_ih
  float* state = nullptr;         ///< [batch, states·width], h first; updated to the last step
  float* out = nullptr;           ///< [batch, seq_len, width]

  [[nodiscard]] std::int64_t gates_width() const { return gates_of(cell) * width; }
  [[nodiscard]] std::int64_t state_width() const { return states_of(cell) * width; }
  [[nodiscard]] std::int64_t scratch_floats() const { return batch * (width + gates_width()); }
};

/// Runs all steps. `hidden` is W_hh [gates·width, width] with its bias; `scratch` has
/// scratch_floats(). Gates are defined and ordered as in torch.nn.RNN, LSTM and GRU. Returns the
/// FLOPs of the matrix products.
std::int64_t recurrence(const RecurrenceArguments& args, PackedLinear& hidden, float* scratch);

}  // namespace headroom::measured
