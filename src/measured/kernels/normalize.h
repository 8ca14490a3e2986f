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

/// Sums of squares of rows of `features` values, of which this process has `width`, in one of
/// several groups.
struct RowSums {
  std::int64_t groups = 1;
  std::int64_t group = 0;     ///< of this process
  std::int64_t features = 0;  ///< of a group
};

/// Writes the sum of squares of each row's `width` values to sums [rows, groups], zeros for other
/// groups.
void sum_squares(const RowSums& rows, const NormArguments& norm, const float* x, float* sums);

/// rms_norm with the mean over all of a row's features. out may be x.
void rms_norm_of(const RowSums& rows, const float* sums, const NormArguments& norm, const float* x,
                 float* out);

/// Divides every row of x [rows, width] by its Euclidean length. A row of zeros becomes NaN, as in
/// the reference code.
void unit_length(std::int64_t rows, std::int64_t width, float* x);

/// Layer norm of each channel of x [batch, length, channels] over the positions of a sequence, with
/// weight and bias [channels] (a group norm of one channel per group). out may be x.
struct ChannelNormArguments {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::int64_t channels = 0;
};
void channel_norm(const ChannelNormArguments& sizes, const NormArguments& norm, const float* x,
                  float* out);

/// x += r, then out = layer_norm(x). out may be x.
void add_layer_norm(const NormArguments& norm, float* x, const float* r, float* out);

/// x += r, then out = rms_norm(x). out may be x.
void add_rms_norm(const NormArguments& norm, float* x, const float* r, float* out);

}  // namespace headroom::measured
