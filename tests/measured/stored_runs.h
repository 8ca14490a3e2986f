// Runs of random weights as they are stored, and the distance of their outputs from others.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "measure.h"

namespace headroom::test {

inline Workload prompt_of(std::int64_t tokens) {
  Workload workload;
  workload.seq_len = tokens;
  return workload;
}

/// Logits of `spec` with random weights, the same ones in every call.
inline std::vector<float> logits_of(const ModelSpec& spec,
                                    const measured::SessionOptions& options) {
  const auto source = measured::random_stored(spec, 7);
  measured::Session session(spec, *source, options);
  for (measured::NamedTensor& tensor :
       session.forward(measured::random_inputs(spec, prompt_of(9), 3))) {
    if (tensor.name == "logits") return std::move(tensor.values);
  }
  return {};
}

inline measured::SessionOptions stored_with(measured::ActivationPath path) {
  measured::SessionOptions options;
  options.storage = measured::HeldType::stored;
  options.activations = path;
  return options;
}

inline double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += std::pow(static_cast<double>(value), 2);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

/// Root mean square of a − b over that of b.
inline double relative_error(std::vector<float> a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return root_mean_square(a) / root_mean_square(b);
}

}  // namespace headroom::test
