// The kernels behind PackedLinear, and what they share.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include "aligned.h"
#include "gemm.h"

namespace headroom::measured {

/// Parts stacked to one matrix W [out, in], as the caller holds them, and their bias [out], empty
/// where no part has one.
struct StackedWeights {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::span<const LinearPart> parts;
  WeightStorage storage = WeightStorage::float32;
  PooledVector<float> bias;
};

/// W, row-major, each weight rounded as its storage asks for.
void copy_weights(const StackedWeights& weights, float* to);

/// To the nearest bfloat16, ties to even; not for NaN.
[[nodiscard]] inline float round_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

/// Working memory for `floats`, which every kernel on this thread shares; what it held is lost when
/// it grows.
[[nodiscard]] float* shared_scratch(std::int64_t floats);

/// A row-major block of y that holds x·Wᵀ: first row, distance between rows, and its extent.
struct OutputBlock {
  float* first = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Adds the bias (of the block's columns; may be null) and applies the epilogue, but for
/// add_residual, which the product itself has to have done.
void finish(Epilogue epilogue, const float* bias, const OutputBlock& block);

/// Streams W once for every eight rows of x.
std::unique_ptr<LinearKernel> make_streaming_kernel(const StackedWeights& weights,
                                                    const LinearOptions& options);
std::unique_ptr<LinearKernel> make_eigen_kernel(const StackedWeights& weights,
                                                const LinearOptions& options);
/// Throws missing_resource where the build is without oneDNN.
std::unique_ptr<LinearKernel> make_onednn_kernel(const StackedWeights& weights,
                                                 const LinearOptions& options);

}  // namespace headroom::measured
