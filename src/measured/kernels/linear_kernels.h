// Kernels of PackedLinear, and their common parts.
#pragma once

#include <cstdint>
#include <memory>

#include "aligned.h"
#include "gemm.h"
#include "weight_panels.h"

namespace headroom::measured {

namespace blocks {
struct Int8Block;
}

struct WeightStream;

/// Parts to stack into one matrix W [out, in], and their bias [out]; empty if no part has one.
struct StackedWeights {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::span<const LinearPart> parts;
  HeldType storage = HeldType::float32;
  PooledVector<float> bias;
};

/// Returns whether the layer multiplies bfloat16 by bfloat16.
[[nodiscard]] inline bool multiplies_bfloat16(const LinearOptions& options) noexcept {
  return options.storage == HeldType::bfloat16 && options.activations == ActivationPath::bfloat16;
}

/// Scratch of at least `floats` floats, shared by all kernels on this thread. Growing it drops its
/// contents.
[[nodiscard]] float* shared_scratch(std::int64_t floats);

/// Row-major block of y that holds x·Wᵀ: first element, row stride, extent.
struct OutputBlock {
  float* first = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Adds the bias of the block's columns (may be null) and applies the epilogue, except
/// add_residual, which the matrix product itself must do.
void apply_epilogue(Epilogue epilogue, const float* bias, const OutputBlock& block);

/// Streams float32 W once per eight rows of x.
std::unique_ptr<LinearKernel> make_streaming_kernel(const StackedWeights& weights,
                                                    Epilogue epilogue);
/// Likewise with weights that another kernel lays out, too.
std::unique_ptr<LinearKernel> make_streaming_kernel(std::shared_ptr<const WeightStream> stream);
std::unique_ptr<LinearKernel> make_eigen_kernel(const StackedWeights& weights,
                                                const LinearOptions& options);

/// Multiplies with panels and a bias that another kernel holds and this one must not outlive; reads
/// them once for few rows. `can_stream_panels` must hold of the panels. Rounds x to bfloat16 for
/// panels of that type.
std::unique_ptr<LinearKernel> make_panel_kernel(const WeightPanels<float>& panels,
                                                std::span<const float> bias, Epilogue epilogue);
std::unique_ptr<LinearKernel> make_panel_kernel(const WeightPanels<std::uint16_t>& panels,
                                                std::span<const float> bias, Epilogue epilogue);
/// Holds W in bfloat16, for any number of rows.
std::unique_ptr<LinearKernel> make_narrow_kernel(const StackedWeights& weights,
                                                 const LinearOptions& options);
/// Returns whether oneDNN has kernels for bfloat16 on this processor.
[[nodiscard]] bool onednn_has_bfloat16() noexcept;
/// Throws missing_resource in builds without oneDNN.
std::unique_ptr<LinearKernel> make_onednn_kernel(const StackedWeights& weights,
                                                 const LinearOptions& options);

/// Kernel for weights that stay as they are stored, and the outputs of all its parts together.
struct PackedKernel {
  std::unique_ptr<LinearKernel> kernel;
  std::int64_t out = 0;
};
[[nodiscard]] PackedKernel make_block_kernel(std::span<const BlockPart> parts, std::int64_t in,
                                             ActivationPath path);
[[nodiscard]] PackedKernel make_group_kernel(std::span<const GroupPart> parts, std::int64_t in,
                                             ActivationPath path);

/// Throws Error{missing_resource} unless `backend` has the products that `options` ask for.
void require_products(const LinearOptions& options);

/// Quantises `rows` rows of x, [rows, in], into this thread's scratch for int8 activations, which
/// the next call overwrites.
[[nodiscard]] const blocks::Int8Block* quantised_rows(const float* x, std::int64_t rows,
                                                      std::int64_t in);
/// Grows that scratch to as many rows, so that no run allocates.
void prepare_quantised_rows(std::int64_t rows, std::int64_t in);
/// Bytes of the scratch for int8 activations on this thread.
[[nodiscard]] std::int64_t int8_scratch_bytes();
/// Bytes of the scratch for the scales of weights in groups on this thread.
[[nodiscard]] std::int64_t scale_scratch_bytes();

}  // namespace headroom::measured
