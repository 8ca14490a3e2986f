#include "gemm.h"

#include <bit>
#include <string>
#include <utility>

#include "elementwise.h"
#include "headroom/error.h"
#include "linear_kernels.h"
#include "simd.h"

namespace headroom::measured {

namespace {

/// To the nearest bfloat16, ties to even; not for NaN.
float round_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::internal, "cannot build a linear layer: " + what);
}

std::int64_t rows_of(const LinearPart& part, std::int64_t in_features) {
  const auto size = static_cast<std::int64_t>(part.weight.size());
  if (in_features <= 0 || size % in_features != 0) fail("its weight is no whole number of rows");
  const std::int64_t rows = size / in_features;
  if (!part.bias.empty() && static_cast<std::int64_t>(part.bias.size()) != rows) {
    fail("its bias has another length than its output");
  }
  return rows;
}

StackedWeights stack(std::span<const LinearPart> parts, std::int64_t in_features,
                     WeightStorage storage) {
  StackedWeights stacked;
  stacked.in = in_features;
  bool any_bias = false;
  for (const LinearPart& part : parts) {
    stacked.out += rows_of(part, in_features);
    any_bias = any_bias || !part.bias.empty();
  }
  stacked.weight.reserve(static_cast<std::size_t>(stacked.out * in_features));
  for (const LinearPart& part : parts) {
    stacked.weight.insert(stacked.weight.end(), part.weight.begin(), part.weight.end());
    if (!any_bias) continue;
    stacked.bias.insert(stacked.bias.end(), part.bias.begin(), part.bias.end());
    stacked.bias.resize(stacked.weight.size() / static_cast<std::size_t>(in_features));
  }
  if (storage == WeightStorage::bfloat16) {
    for (float& weight : stacked.weight) weight = round_to_bfloat16(weight);
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
  fail("its epilogue is no activation");
}

}  // namespace

void finish(Epilogue epilogue, const float* bias, const OutputBlock& block) {
  const bool activates = epilogue != Epilogue::none && epilogue != Epilogue::add_residual;
  if (bias == nullptr && !activates) return;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    float* values = block.first + row * block.stride;
    if (bias != nullptr) add_bias(bias, values, block.columns);
    if (activates) activate_here(activation_of(epilogue), values, block.columns);
  }
}

PackedLinear::PackedLinear(std::span<const LinearPart> parts, std::int64_t in_features,
                           const LinearOptions& options)
    : in_(in_features), out_(0) {
  StackedWeights weights = stack(parts, in_features, options.storage);
  out_ = weights.out;
  if (options.rows != RowRange::many) few_ = make_streaming_kernel(weights, options);
  if (options.rows == RowRange::few) return;
  switch (options.backend) {
    case Backend::eigen:
      many_ = make_eigen_kernel(std::move(weights), options);
      return;
    case Backend::onednn:
      many_ = make_onednn_kernel(weights, options);
      return;
  }
}

LinearKernel& PackedLinear::kernel_for(std::int64_t rows) const {
  if (many_ == nullptr || (few_ != nullptr && rows <= kFewRows)) return *few_;
  return *many_;
}

void PackedLinear::prepare(std::int64_t rows) { kernel_for(rows).prepare(rows); }

std::int64_t PackedLinear::run(const float* x, float* y, std::int64_t rows) {
  kernel_for(rows).run(x, y, rows);
  return 2 * rows * in_ * out_;
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
