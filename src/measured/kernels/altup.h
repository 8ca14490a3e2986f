// Alternating updates (AltUp, arXiv 2301.13310) as in Gemma 3n: streams [streams, rows, width].
#pragma once

#include <cstdint>
#include <span>

namespace headroom::measured {

struct AltUpArguments {
  std::int64_t streams = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t index = 0;  ///< of the active stream, or the selected one

  [[nodiscard]] std::int64_t stream_floats() const { return rows * width; }
};

/// out [streams, rows, width] = the inputs [rows, width] each; all but the first scaled to its root
/// mean square, row by row.
void altup_stack(const AltUpArguments& args, std::span<const float* const> inputs, float* out);

/// out [rows, width] = the mean of what altup_stack returns.
void altup_merge(const AltUpArguments& args, std::span<const float* const> inputs, float* out);

/// out [rows, width] = stream `index`.
void altup_select(const AltUpArguments& args, const float* streams, float* out);

/// out = streams + Σ_j coefficients[row, stream, j] · stream j, with coefficients [rows, streams,
/// streams]. Returns the FLOPs of the multiply-adds.
std::int64_t altup_predict(const AltUpArguments& args, const float* streams,
                           const float* coefficients, float* out);

/// streams += (activated - stream `index`) · (1 + coefficients [rows, streams]).
void altup_correct(const AltUpArguments& args, const float* activated, const float* coefficients,
                   float* streams);

/// Adds `added` [rows, width] to all streams but the first.
void altup_spread(const AltUpArguments& args, const float* added, float* streams);

}  // namespace headroom::measured
