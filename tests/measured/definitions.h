// Definitions of kernels on a scalar that counts operations: sums of products, and the check of a
// kernel's outputs and FLOPs.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "counting_scalar.h"
#include "kernel_data.h"

namespace headroom::measured::testing {

/// Σ term(i) for i below `count`, where a term is a product that counts.
template <class Term>
CountingScalar sum_of(std::int64_t count, const Term& term) {
  CountingScalar sum;
  for (std::int64_t i = 0; i < count; ++i) sum += term(i);
  return sum;
}

inline CountingScalar times(double a, double b) { return CountingScalar(a) * CountingScalar(b); }

/// Checks outputs and FLOPs of a kernel against a definition that ran on counting scalars.
inline void check_definition(const std::vector<float>& out, std::int64_t flops,
                             const std::vector<double>& expected) {
  CHECK(flops == CountingScalar::take_operations());
  CHECK(largest_error(out, expected) < 1e-5);
}

}  // namespace headroom::measured::testing
