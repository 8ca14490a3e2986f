#include "gemm.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "elementwise.h"
#include "headroom/error.h"
#include "linear_kernels.h"
#include "simd.h"

namespace headroom::measured {

namespace {

[[noreturn]] void fail(const std::string& reason) {
  throw Error(ErrorCode::internal, "cannot build a linear layer: " + reason);
}

std::int64_t rows_of(const LinearPart& part, std::int64_t in_features) {
  const auto size = static_cast<std::int64_t>(part.weight.size());
  if (in_features <= 0 || size % in_features != 0)
    fail("the size of its weight is not a multiple of in_features");
  const std::int64_t rows = size / in_features;
  if (!part.bias.empty() && static_cast<std::int64_t>(part.bias.size()) != rows) {
    fail("its bias does not have the length of its output");
  }
  return rows;
}

StackedWeights stack(std::span<const LinearPart> parts, std::int64_t in_features,
                     HeldType storage) {
  StackedWeights stacked{in_features, 0, parts, storage, {}};
  bool any_bias = false;
  for (const LinearPart& part : parts) {
    stacked.out += rows_of(part, in_features);
    any_bias = any_bias || !part.bias.empty();
  }
  if (!any_bias) return stacked;
  stacked.bias.reserve(static_cast<std::size_t>(stacked.out));
  std::size_t rows = 0;
  for (const LinearPart& part : parts) {
    stacked.bias.insert(stacked.bias.end(), part.bias.begin(), part.bias.end());
    rows += part.weight.size() / static_cast<std::size_t>(in_features);
    stacked.bias.resize(rows);
  }
  return stacked;
}

void add_bias(const float* bias, float* row, std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; ++i) row[i] += bias[i];
}

ActivationKind activation_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::relu:
      return ActivationKind::relu;
    case Epilogue::gelu:
      return ActivationKind::gelu;
    case Epilogue::gelu_tanh:
      return ActivationKind::gelu_tanh;
    case Epilogue::silu:
      return ActivationKind::silu;
    case Epilogue::tanh:
      return ActivationKind::tanh;
    case Epilogue::none:
    case Epilogue::add_residual:
      break;
  }
  fail("its epilogue is not an activation");
}

}  // namespace

namespace {

AlignedVector<float>& scratch_of_thread() {
  thread_local AlignedVector<float> scratch;
  return scratch;
}

}  // namespace

std::int64_t gemm_scratchpad_bytes() {
  return static_cast<std::int64_t>(scratch_of_thread().size() * sizeof(float)) +
         int8_scratch_bytes() + scale_scratch_bytes();
}

float* shared_scratch(std::int64_t floats) {
  AlignedVector<float>& scratch = scratch_of_thread();
  if (static_cast<std::int64_t>(scratch.size()) < floats) {
    scratch = AlignedVector<float>(static_cast<std::size_t>(floats));
  }
  return scratch.data();
}

void apply_epilogue(Epilogue epilogue, const float* bias, const OutputBlock& block) {
  const bool activates = epilogue != Epilogue::none && epilogue != Epilogue::add_residual;
  if (bias == nullptr && !activates) return;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* values = block.first + row * block.stride;
    if (bias != nullptr) add_bias(bias, values, block.columns);
    if (activates) activate_here(activation_of(epilogue), values, block.columns);
  }
}

namespace {

std::unique_ptr<LinearKernel> make_kernel_of_many_rows(const StackedWeights& weights,
                                                       const LinearOptions& options) {
  require_products(options);
  switch (options.backend) {
    case Backend::eigen:
      return make_eigen_kernel(weights, options);
    case Backend::onednn:
      return make_onednn_kernel(weights, options);
  }
  return nullptr;
}

}  // namespace

namespace {

/// Returns whether bfloat16 weights have one kernel for any number of rows.
bool has_narrow_kernel(const LinearOptions& options) {
  if (options.storage != HeldType::bfloat16) return false;
  return !multiplies_bfloat16(options) || options.rows == RowRange::few;
}

}  // namespace

PackedLinear::PackedLinear(std::span<const LinearPart> parts, std::int64_t in_features,
                           const LinearOptions& options)
    : in_(in_features), out_(0) {
  const StackedWeights weights = stack(parts, in_features, options.storage);
  out_ = weights.out;
  if (has_narrow_kernel(options)) {
    few_ = make_narrow_kernel(weights, options);
  } else if (options.rows == RowRange::few) {
    few_ = make_streaming_kernel(weights, options.epilogue);
  } else {
    many_ = make_kernel_of_many_rows(weights, options);
    if (options.rows == RowRange::both) few_ = many_->kernel_of_few_rows();
  }
}

PackedLinear::PackedLinear(std::span<const BlockPart> parts, std::int64_t in_features,
                           ActivationPath path)
    : in_(in_features), out_(0) {
  PackedKernel linear = make_block_kernel(parts, in_features, path);
  out_ = linear.out;
  few_ = std::move(linear.kernel);
}

PackedLinear::PackedLinear(std::span<const GroupPart> parts, std::int64_t in_features,
                           ActivationPath path)
    : in_(in_features), out_(0) {
  PackedKernel linear = make_group_kernel(parts, in_features, path);
  out_ = linear.out;
  few_ = std::move(linear.kernel);
}

LinearKernel& PackedLinear::kernel_for(std::int64_t rows) const {
  if (many_ == nullptr || (few_ != nullptr && rows <= kFewRows)) return *few_;
  return *many_;
}

void PackedLinear::prepare(std::int64_t rows) { kernel_for(rows).prepare(rows); }

std::int64_t PackedLinear::held_bytes() const {
  return (few_ == nullptr ? 0 : few_->held_bytes()) + (many_ == nullptr ? 0 : many_->held_bytes());
}

std::int64_t PackedLinear::weight_bytes(std::int64_t rows) const {
  return kernel_for(rows).weight_bytes();
}

bool PackedLinear::read_row(std::int64_t row, float* to) const {
  const auto reads = [&](const LinearKernel* kernel) {
    return kernel != nullptr && kernel->read_row(row, to);
  };
  return reads(few_.get()) || reads(many_.get());
}

std::int64_t PackedLinear::run(const float* x, float* y, std::int64_t rows) {
  kernel_for(rows).run(x, y, rows);
  return 2 * rows * in_ * out_;
}

bool has_bfloat16_products(Backend backend) noexcept {
  return backend == Backend::onednn && onednn_has_bfloat16();
}

void require_products(const LinearOptions& options) {
  if (!multiplies_bfloat16(options) || has_bfloat16_products(options.backend)) return;
  throw Error(ErrorCode::missing_resource,
              "no kernel multiplies bfloat16 activations on this processor and backend", {},
              "use float32 activations, or the onednn backend on a processor with AVX512-BF16");
}

bool is_available(Backend backend) noexcept {
#ifdef HEADROOM_HAS_ONEDNN
  constexpr bool kHasOnednn = true;
#else
  constexpr bool kHasOnednn = false;
#endif
  switch (backend) {
    case Backend::eigen:
      return true;
    case Backend::onednn:
      return kHasOnednn;
  }
  return false;
}

}  // namespace headroom::measured
