// Steps of a derivation, before they are grouped. Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/report.h"

namespace headroom::detail {

/// A step, and the place that it belongs to.
struct PlacedStep {
  std::string block;  ///< "encoder.layers", with the layers where kinds differ: "[0:48:4]"
  Expr times;         ///< copies: one per layer
  std::string group;  ///< "attention"
  std::string name;
  std::string path;
  std::string operands;
  Expr product;  ///< of one copy
};

/// The steps of `subject` in order of execution. Throws Error{invalid_input} if it has none.
[[nodiscard]] std::vector<PlacedStep> steps_of(const AnalyzeReport& report, Subject subject);

/// The figure that the steps sum to, from the analysis.
[[nodiscard]] Expr figure_of(const AnalyzeReport& report, Subject subject);

/// FLOP, parameters or B.
[[nodiscard]] std::string unit_of(Subject subject);

/// Bytes per parameter of a training step: weights, gradients, and what the optimizer holds.
struct BytesPerParameter {
  Integer weights = 0;
  Integer gradients = 0;
  Integer master = 0;     ///< float32 copy of the weights
  Integer one_state = 0;  ///< Adam has two: mean and variance of the gradient
  std::string source;
  [[nodiscard]] Integer total() const { return weights + gradients + master + 2 * one_state; }
};

/// Of Adam: Megatron-LM's mixed precision for 16-bit types, else all in float32.
[[nodiscard]] BytesPerParameter bytes_per_parameter(DType dtype);

}  // namespace headroom::detail
