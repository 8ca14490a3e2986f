// Layer norm and RMS norm of rows [rows, width], in place or not. Mean and variance take two passes
// over a row, which is in cache, in float32 lanes.
#pragma once

#include <cstdint>

namespace headroom::measured {

struct NormArguments {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  const float* weight = nullptr;  ///< [width], or null for none
  const float* bias = nullptr;    ///< [width], or null for none
  float eps = 0;
  std::int64_t stride = 0;  ///< row stride; 0: width
};

/// out = (x - mean) / √(variance + eps) · weight + bias (arXiv 1607.06450). out may be x.
void layer_norm(const NormArguments& norm, const float* x, float* out);

/// out = x / √(mean of x² + eps) · weight + bias (arXiv 1910.07467). out may be x.
void rms_norm(const NormArguments& norm, const float* x, float* out);

/// x += r, then out = layer_norm(x). out may be x.
void add_layer_norm(const NormArguments& norm, float* x, const float* r, float* out);

/// x += r, then out = rms_norm(x). out may be x.
void add_rms_norm(const NormArguments& norm, float* x, const float* r, float* out);

}  // namespace headroom::measured
