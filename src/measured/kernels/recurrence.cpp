#include "recurrence.h"

#include <algorithm>

#include "parallel.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::kLanes;

/// Operands of one sequence in one step, by gate: W_ih·x from the input and W_hh·h from the state.
struct CellRow {
  const float* inputs = nullptr;
  const float* recurrent = nullptr;
  float* h = nullptr;  ///< previous step, then this one
  float* c = nullptr;  ///< cell state of an LSTM, likewise
  std::int64_t width = 0;
};

/// The lanes of a vector that belong to a row.
struct Lanes {
  std::int64_t first;
  std::int64_t count;

  [[nodiscard]] Floats load(const float* row) const {
    return count == kLanes ? simd::load(row + first) : simd::load_first(row + first, count);
  }
  void store(float* row, Floats value) const {
    if (count == kLanes) {
      simd::store(row + first, value);
    } else {
      simd::store_first(row + first, value, count);
    }
  }
};

/// Calls body(lanes, input, recurrent) for every vector of units; input(gate) and recurrent(gate)
/// give W_ih·x and W_hh·h.
template <class Body>
void for_units(const CellRow& row, const Body& body) {
  for (std::int64_t first = 0; first < row.width; first += kLanes) {
    const Lanes lanes{first, std::min(kLanes, row.width - first)};
    body(
        lanes, [&](std::int64_t gate) { return lanes.load(row.inputs + gate * row.width); },
        [&](std::int64_t gate) { return lanes.load(row.recurrent + gate * row.width); });
  }
}

void rnn_step(const CellRow& row) {
  for_units(row, [&](const Lanes& at, const auto& input, const auto& recurrent) {
    at.store(row.h, simd::tanh(input(0) + recurrent(0)));
  });
}

void lstm_step(const CellRow& row) {
  for_units(row, [&](const Lanes& at, const auto& input, const auto& recurrent) {
    const Floats in = simd::sigmoid(input(0) + recurrent(0));
    const Floats forget = simd::sigmoid(input(1) + recurrent(1));
    const Floats cell = simd::tanh(input(2) + recurrent(2));
    const Floats out = simd::sigmoid(input(3) + recurrent(3));
    const Floats memory = forget * at.load(row.c) + in * cell;
    at.store(row.c, memory);
    at.store(row.h, out * simd::tanh(memory));
  });
}

void gru_step(const CellRow& row) {
  for_units(row, [&](const Lanes& at, const auto& input, const auto& recurrent) {
    const Floats reset = simd::sigmoid(input(0) + recurrent(0));
    const Floats update = simd::sigmoid(input(1) + recurrent(1));
    const Floats fresh = simd::tanh(input(2) + reset * recurrent(2));
    at.store(row.h, (1.0F - update) * fresh + update * at.load(row.h));
  });
}

void step(RecurrentCell cell, const CellRow& row) {
  switch (cell) {
    case RecurrentCell::rnn:
      return rnn_step(row);
    case RecurrentCell::lstm:
      return lstm_step(row);
    case RecurrentCell::gru:
      return gru_step(row);
  }
}

/// Applies the gates of all sequences at one position.
void step_all(const RecurrenceArguments& args, std::int64_t position, float* h,
              const float* recurrent) {
  const std::int64_t gates = args.gates_width();
#pragma omp parallel for schedule(static) if (args.batch * gates >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    const std::int64_t place = item * args.seq_len + position;
    float* const own = h + item * args.width;
    step(args.cell, {args.inputs + place * gates, recurrent + item * gates, own,
                     args.state + item * args.state_width() + args.width, args.width});
    std::copy_n(own, args.width, args.out + place * args.width);
  }
}

}  // namespace

std::int64_t recurrence(const RecurrenceArguments& args, PackedLinear& hidden, float* scratch) {
  // The matrix product needs the states of all sequences as dense rows.
  float* const h = scratch;
  float* const recurrent = scratch + args.batch * args.width;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    std::copy_n(args.state + item * args.state_width(), args.width, h + item * args.width);
  }
  std::int64_t flops = 0;
  for (std::int64_t position = 0; position < args.seq_len; ++position) {
    flops += hidden.run(h, recurrent, args.batch);
    step_all(args, position, h, recurrent);
  }
  for (std::int64_t item = 0; item < args.batch; ++item) {
    std::copy_n(h + item * args.width, args.width, args.state + item * args.state_width());
  }
  return flops;
}

}  // namespace headroom::measured
