// Rotary position embedding (RoPE, arXiv 2104.09864), as in Hugging Face's Llama.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::measured {

/// Cosines and sines of every position's angles, each [positions, half].
struct RotaryTable {
  std::int64_t positions = 0;
  std::int64_t half = 0;  ///< half of the rotary dimensions
  RopeLayout layout = RopeLayout::half_split;
  std::vector<float> cos;
  std::vector<float> sin;
};

/// Frequencies [dim / 2]: angle per position of each pair of dimensions, theta^(-2i/dim), scaled as
/// `rope` specifies. Dynamic scaling depends on the longest sequence, `positions`, and the trained
/// context, `trained_positions`; other kinds ignore both. In float32 where the reference code is,
/// since large positions magnify rounding errors.
[[nodiscard]] std::vector<float> rotary_frequencies(const RopeSpec& rope, std::int64_t dim,
                                                    std::int64_t positions,
                                                    std::int64_t trained_positions);

[[nodiscard]] RotaryTable make_rotary_table(const RopeSpec& rope, std::int64_t dim,
                                            std::int64_t positions, std::int64_t trained_positions);

/// The rows of positions [first, end) alone, of a sequence that is `end` long so far.
[[nodiscard]] RotaryTable make_rotary_rows(const RopeSpec& rope, std::int64_t dim,
                                           std::int64_t first, std::int64_t end,
                                           std::int64_t trained_positions);

/// Row and column of a patch as RoPE counts them; both 0 for tokens that do not rotate.
struct PatchPoint {
  float row = 0;
  float column = 0;
};

/// Angles of patches by their row and column, as `rope.axes` assigns them to pairs.
[[nodiscard]] RotaryTable make_patch_rotary_table(const RopeSpec& rope, std::int64_t dim,
                                                  const std::vector<PatchPoint>& points);

/// Position of a token on the axes time, height and width.
using AxisPosition = std::array<std::int64_t, 3>;

/// Angles of tokens by their positions on three axes, as `rope.axes` assigns them to pairs.
[[nodiscard]] RotaryTable make_axis_rotary_table(const RopeSpec& rope, std::int64_t dim,
                                                 std::int64_t trained_positions,
                                                 const std::vector<AxisPosition>& positions);

/// Heads to rotate, starting at x; strides in floats.
struct RotaryArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t heads = 0;
  std::int64_t head_stride = 0;  ///< from head to head
  std::int64_t stride = 0;       ///< from token to token
  std::int64_t batch_stride = 0;
  std::int64_t first_position = 0;  ///< of the first token; first_position + seq_len <= positions
  const std::int64_t* shifts = nullptr;  ///< [batch], added to the positions; null: all 0
};

/// Rotates each pair of every head by its angle, in place. The table's layout pairs dimensions.
void apply_rotary(const RotaryTable& table, const RotaryArguments& args, float* x);

}  // namespace headroom::measured
