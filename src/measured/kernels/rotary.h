// Rotary position embedding (arXiv 2104.09864) as Hugging Face's Llama has it.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// Cosines and sines of every position's angles, [positions, half] each.
struct RotaryTable {
  std::int64_t positions = 0;
  std::int64_t half = 0;  ///< of the dimensions that turn
  RopeLayout layout = RopeLayout::half_split;
  std::vector<float> cos;
  std::vector<float> sin;
};

/// Angle per position of each pair of dimensions, [dim / 2]: theta^(-2i/dim), stretched as `rope`
/// says. Dynamic scaling depends on the longest sequence, `positions`, and on the
/// trained context, `trained_positions`; the other kinds ignore both. In float32 where the
/// reference code is, since large positions magnify every rounding.
[[nodiscard]] std::vector<float> rotary_frequencies(const RopeSpec& rope, std::int64_t dim,
                                                    std::int64_t positions,
                                                    std::int64_t trained_positions);

[[nodiscard]] RotaryTable make_rotary_table(const RopeSpec& rope, std::int64_t dim,
                                            std::int64_t positions, std::int64_t trained_positions);

/// Heads to turn, from x on; strides in floats.
struct RotaryArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t heads = 0;
  std::int64_t head_stride = 0;  ///< from head to head
  std::int64_t stride = 0;       ///< from token to token
  std::int64_t batch_stride = 0;
  std::int64_t first_position = 0;  ///< of the first token; first_position + seq_len <= positions
};

/// Turns each pair of every head, (x[i], x[i + half]) or (x[2i], x[2i + 1]), by its angle, in
/// place.
void apply_rotary(const RotaryTable& table, const RotaryArguments& args, float* x);

}  // namespace headroom::measured
