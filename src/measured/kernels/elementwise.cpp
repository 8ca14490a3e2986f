#include "elementwise.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"
#include "scalar_math.h"
#include "vector_math.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

/// Elements to prefetch ahead: one page, since hardware prefetchers stop at the end of a page. The
/// output of a matrix product has long left the nearer caches.
constexpr std::int64_t kPrefetchDistance = 1024;

/// gpt-oss: (clamp(up, ±7) + 1) · g · sigmoid(1.702·g) with g = min(gate, 7).
Floats clamped_swiglu(Floats gate, Floats up) {
  constexpr float kLimit = 7.0F;
  constexpr float kAlpha = 1.702F;
  const Floats limit = simd::broadcast(kLimit);
  gate = gate < limit ? gate : limit;
  up = up < limit ? up : limit;
  up = simd::max(up, -limit);
  return (up + 1.0F) * (gate * simd::sigmoid(gate * kAlpha));
}

/// DeepSeek-V4: silu(min(gate, 10)) · clamp(up, ±10).
Floats clamped_silu(Floats gate, Floats up) {
  const Floats limit = simd::broadcast(10.0F);
  gate = gate < limit ? gate : limit;
  up = up < limit ? up : limit;
  return simd::silu(gate) * simd::max(up, -limit);
}

/// Calls body with the function of `kind`; each has its own type.
template <class Body>
void with_activation(ActivationKind kind, const Body& body) {
  switch (kind) {
    case ActivationKind::relu:
      return body([](Floats x) { return simd::relu(x); });
    case ActivationKind::relu_squared:
      return body([](Floats x) { return simd::relu(x) * simd::relu(x); });
    case ActivationKind::identity:
      return body([](Floats x) { return x; });
    case ActivationKind::gelu:
      return body([](Floats x) { return simd::gelu(x); });
    case ActivationKind::gelu_tanh:
    case ActivationKind::gelu_new:
      return body([](Floats x) { return simd::gelu_tanh(x); });
    case ActivationKind::quick_gelu: {
      constexpr float kAlpha = 1.702F;
      return body([](Floats x) { return x * simd::sigmoid(x * kAlpha); });
    }
    case ActivationKind::silu:
      return body([](Floats x) { return simd::silu(x); });
    case ActivationKind::tanh:
      return body([](Floats x) { return simd::tanh(x); });
    case ActivationKind::sigmoid:
      return body([](Floats x) { return simd::sigmoid(x); });
    case ActivationKind::softplus:
      return body([](Floats x) { return simd::softplus(x); });
    case ActivationKind::clamped_swiglu:
    case ActivationKind::clamped_silu:  // take two arguments
    case ActivationKind::xielu:         // takes trained constants
      break;
  }
}

/// out[i] = f(in[i], other[i])
template <class Function>
void combine(const float* in, const float* other, float* out, std::int64_t count,
             const Function& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    simd::prefetch_to_read(in + i + kPrefetchDistance);
    simd::prefetch_to_read(other + i + kPrefetchDistance);
    simd::prefetch_to_write(out + i + kPrefetchDistance);
    simd::store(out + i, f(simd::load(in + i), simd::load(other + i)));
  }
  const std::int64_t rest = count - i;
  if (rest == 0) return;
  const Floats value = f(simd::load_first(in + i, rest), simd::load_first(other + i, rest));
  simd::store_first(out + i, value, rest);
}

/// x[i] = f(x[i])
template <class Function>
void transform(float* x, std::int64_t count, const Function& f) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    simd::prefetch_to_write(x + i + kPrefetchDistance);
    simd::store(x + i, f(simd::load(x + i)));
  }
  const std::int64_t rest = count - i;
  if (rest > 0) simd::store_first(x + i, f(simd::load_first(x + i, rest)), rest);
}

/// Calls body(range) on every thread with its part of [0, count).
template <class Body>
void for_thread_ranges(std::int64_t count, const Body& body) {
#pragma omp parallel if (count >= kSerialElements)
  body(thread_range(count, kLanes));
}

}  // namespace

void activate_here(ActivationKind kind, float* x, std::int64_t count) {
  with_activation(kind, [&](const auto& f) { transform(x, count, f); });
}

void activate(ActivationKind kind, float* x, std::int64_t count) {
  for_thread_ranges(count,
                    [&](Range range) { activate_here(kind, x + range.begin, range.size()); });
}

namespace {

template <class Function>
void combine_halves(const float* gate_up, float* out, std::int64_t rows, std::int64_t width,
                    const Function& f) {
#pragma omp parallel for if (rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* gate = gate_up + 2 * row * width;
    combine(gate, gate + width, out + row * width, width, f);
  }
}

}  // namespace

void activate_gated(ActivationKind kind, const float* gate_up, float* out, std::int64_t rows,
                    std::int64_t width) {
  if (kind == ActivationKind::clamped_swiglu) {
    return combine_halves(gate_up, out, rows, width, clamped_swiglu);
  }
  if (kind == ActivationKind::clamped_silu) {
    return combine_halves(gate_up, out, rows, width, clamped_silu);
  }
  with_activation(kind, [&](const auto& f) {
    combine_halves(gate_up, out, rows, width,
                   [&f](Floats gate, Floats up) { return f(gate) * up; });
  });
}

void activate_limited_gates(ActivationKind kind, double limit, const float* gate_up, float* out,
                            std::int64_t rows, std::int64_t width) {
  const Floats most = simd::broadcast(static_cast<float>(limit));
  with_activation(kind, [&](const auto& f) {
    combine_halves(gate_up, out, rows, width, [&f, most](Floats gate, Floats up) {
      const Floats activated = f(gate);
      up = up < most ? up : most;
      return (activated < most ? activated : most) * simd::max(up, -most);
    });
  });
}

void activate_capped_gates(float gate_cap, float up_cap, const float* gate_up, float* out,
                           std::int64_t rows, std::int64_t width) {
  const auto capped = [](Floats x, float cap) { return cap * simd::tanh(x * (1.0F / cap)); };
  combine_halves(gate_up, out, rows, width, [=](Floats gate, Floats up) {
    const Floats activated = capped(gate, gate_cap) * simd::sigmoid(gate);
    return activated * (up_cap > 0 ? capped(up, up_cap) : up);
  });
}

namespace {

/// Mean of a row and `deviations` standard deviations.
float cutoff_of(const float* row, std::int64_t width, double deviations) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += static_cast<double>(row[i]);
  const double mean = sum / static_cast<double>(width);
  double squares = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    const double distance = static_cast<double>(row[i]) - mean;
    squares += distance * distance;
  }
  return static_cast<float>(mean + deviations * std::sqrt(squares / static_cast<double>(width)));
}

}  // namespace

void activate_cut_gates(ActivationKind kind, double deviations, const float* gate_up, float* out,
                        std::int64_t rows, std::int64_t width) {
  with_activation(kind, [&](const auto& f) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* const gate = gate_up + 2 * row * width;
      const float cutoff = cutoff_of(gate, width, deviations);
      combine(gate, gate + width, out + row * width, width,
              [&](Floats value, Floats up) { return f(simd::relu(value - cutoff)) * up; });
    }
  });
}

void add_residual(float* x, const float* r, std::int64_t count) {
  for_thread_ranges(count, [&](Range range) {
    combine(x + range.begin, r + range.begin, x + range.begin, range.size(),
            [](Floats a, Floats b) { return a + b; });
  });
}

void multiply_by_activation(ActivationKind kind, const float* gate, float* x, std::int64_t count) {
  with_activation(kind, [&](const auto& f) {
    for_thread_ranges(count, [&](Range range) {
      combine(gate + range.begin, x + range.begin, x + range.begin, range.size(),
              [&f](Floats g, Floats value) { return f(g) * value; });
    });
  });
}

void multiply_rows_by_activation(ActivationKind kind, const float* gate, float* x,
                                 std::int64_t gates, std::int64_t width) {
  with_activation(kind, [&](const auto& f) {
#pragma omp parallel for if (gates * width >= kSerialElements) schedule(static)
    for (std::int64_t row = 0; row < gates; ++row) {
      float factor = 0;
      simd::store_first(&factor, f(simd::broadcast(gate[row])), 1);
      transform(x + row * width, width, [factor](Floats value) { return value * factor; });
    }
  });
}

void add_scaled_residual(float* x, const float* r, float factor, std::int64_t count) {
  for_thread_ranges(count, [&](Range range) {
    combine(x + range.begin, r + range.begin, x + range.begin, range.size(),
            [factor](Floats a, Floats b) { return a + b * factor; });
  });
}

void soft_cap(float* x, float cap, std::int64_t count) {
  for_thread_ranges(count, [&](Range range) {
    transform(x + range.begin, range.size(), [cap](Floats a) { return simd::tanh(a / cap) * cap; });
  });
}

void clamp(float* x, ValueBounds bounds, std::int64_t count) {
  for_thread_ranges(count, [&](Range range) {
    transform(x + range.begin, range.size(), [bounds](Floats a) {
      const Floats upper = simd::broadcast(bounds.greatest);
      return simd::max(a < upper ? a : upper, simd::broadcast(bounds.least));
    });
  });
}

void gate_rows(float* x, const float* gate, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for if (rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    const float factor = sigmoid(gate[row]);
    transform(x + row * width, width, [factor](Floats a) { return a * factor; });
  }
}

void scale_rows(float* x, const float* factors, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for if (rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = x + row * width;
    combine(to, factors, to, width, [](Floats a, Floats b) { return a * b; });
  }
}

void shift_rows(float* x, const float* vector, std::int64_t rows, std::int64_t width) {
#pragma omp parallel for if (rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = x + row * width;
    combine(to, vector, to, width, [](Floats a, Floats b) { return a + b; });
  }
}

void xielu(const XieluConstants& constants, float* x, std::int64_t count) {
  const float positive = softplus(constants.positive);
  const float negative = constants.slope + softplus(constants.negative);
  for_thread_ranges(count, [&](Range range) {
    transform(x + range.begin, range.size(), [&](Floats a) {
      const Floats above = positive * a * a;
      const Floats below =
          (simd::expm1(simd::min(a, simd::broadcast(constants.bound))) - a) * negative;
      return (a > 0.0F ? above : below) + constants.slope * a;
    });
  });
}

void scale(float* x, float factor, std::int64_t count) {
  for_thread_ranges(count, [&](Range range) {
    transform(x + range.begin, range.size(), [factor](Floats a) { return a * factor; });
  });
}

}  // namespace headroom::measured
