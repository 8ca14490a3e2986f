#include "recurrence.h"

#include <algorithm>

#include "parallel.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::kLanes;

/// One sequence's operands of one step, by gate: what the input brings and what the state does.
struct CellRow {
  const float* inputs = nullptr;
  const float* products = nullptr;
  float* h = nullptr;  ///< of the step before, then of this one
  float* c = nullptr;  ///< an LSTM's memory, likewise
  std::int64_t width = 0;
};

/// As many lanes as are left of a row.
struct Lanes {
  std::int64_t first;
  std::int64_t count;

  [[nodiscard]] Floats of(const float* row) const {
    return count == kLanes ? simd::load(row + first) : simd::load_first(row + first, count);
  }
  void put(float* row, Floats value) const {
    if (count == kLanes) {
      simd::store(row + first, value);
    } else {
      simd::store_first(row + first, value, count);
    }
  }
};

/// Calls body(lanes, input, product), which give a gate's part of either.
template <class Body>
void for_units(const CellRow& row, const Body& body) {
  for (std::int64_t first = 0; first < row.width; first += kLanes) {
    const Lanes lanes{first, std::min(kLanes, row.width - first)};
    body(
        lanes, [&](std::int64_t gate) { return lanes.of(row.inputs + gate * row.width); },
        [&](std::int64_t gate) { return lanes.of(row.products + gate * row.width); });
  }
}

void rnn_step(const CellRow& row) {
  for_units(row, [&](const Lanes& at, const auto& input, const auto& product) {
    at.put(row.h, simd::tanh(input(0) + product(0)));
  });
}

void lstm_step(const CellRow& row) {
  for_units(row, [&](const Lanes& at, const auto& input, const auto& product) {
    const Floats in = simd::sigmoid(input(0) + product(0));
    const Floats forget = simd::sigmoid(input(1) + product(1));
    const Floats cell = simd::tanh(input(2) + product(2));
    const Floats out = simd::sigmoid(input(3) + product(3));
    const Floats memory = forget * at.of(row.c) + in * cell;
    at.put(row.c, memory);
    at.put(row.h, out * simd::tanh(memory));
  });
}

void gru_step(const CellRow& row) {
  for_units(row, [&](const Lanes& at, const auto& input, const auto& product) {
    const Floats reset = simd::sigmoid(input(0) + product(0));
    const Floats update = simd::sigmoid(input(1) + product(1));
    const Floats fresh = simd::tanh(input(2) + reset * product(2));
    at.put(row.h, (1.0F - update) * fresh + update * at.of(row.h));
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

/// The gates of all sequences at one position.
void step_all(const RecurrenceArguments& args, std::int64_t position, float* h,
              const float* products) {
  const std::int64_t gates = args.gates_width();
#pragma omp parallel for schedule(static) if (args.batch * gates >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    const std::int64_t place = item * args.seq_len + position;
    float* const own = h + item * args.width;
    step(args.cell, {args.inputs + place * gates, products + item * gates, own,
                     args.state + item * args.state_width() + args.width, args.width});
    std::copy_n(own, args.width, args.out + place * args.width);
  }
}

}  // namespace

std::int64_t recurrence(const RecurrenceArguments& args, PackedLinear& hidden, float* scratch) {
  // Dense rows of all sequences' states, as the product wants them.
  float* const h = scratch;
  float* const products = scratch + args.batch * args.width;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    std::copy_n(args.state + item * args.state_width(), args.width, h + item * args.width);
  }
  std::int64_t flops = 0;
  for (std::int64_t position = 0; position < args.seq_len; ++position) {
    flops += hidden.run(h, products, args.batch);
    step_all(args, position, h, products);
  }
  for (std::int64_t item = 0; item < args.batch; ++item) {
    std::copy_n(h + item * args.width, args.width, args.state + item * args.state_width());
  }
  return flops;
}

}  // namespace headroom::measured
